package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/test/bufconn"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/schema"
)

func nothing(context.Context, input) (any, error) { return nil, nil }

// The manifest says what the worker says, and its schema comes from the handler's input unless the author wrote one.
func TestManifest(t *testing.T) {
	t.Parallel()
	w := sdk.Worker{
		Name: "feed-pull", Version: "1.2.3", Description: "pulls a feed", LockKey: []string{"name"}, Limits: map[string]string{"task_timeout": "2m"},
	}
	m := sdktest.Start(t, sdk.New(w, nothing)).Describe()
	if m.GetName() != "feed-pull" || m.GetVersion() != "1.2.3" || m.GetDescription() != "pulls a feed" || m.GetSlots() != 1 ||
		len(m.GetLockKey()) != 1 || m.GetDefaultLimits()["task_timeout"] != "2m" {
		t.Errorf("got %v", m)
	}
	s, err := schema.Parse(m.GetPayloadSchema())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check([]byte(`{"name":1}`)); err == nil || !strings.Contains(err.Error(), "name") {
		t.Errorf("the schema %s says %v", m.GetPayloadSchema(), err)
	}
	w.Schema = `{"required":["x"]}`
	if m := sdktest.Start(t, sdk.New(w, nothing)).Describe(); m.GetPayloadSchema() != w.Schema {
		t.Errorf("got schema %s", m.GetPayloadSchema())
	}
	raw := sdk.New(sdk.Worker{Name: "raw"}, func(context.Context, json.RawMessage) (any, error) { return nil, nil })
	if m := sdktest.Start(t, raw).Describe(); m.GetPayloadSchema() != "" {
		t.Errorf("a raw payload has the schema %s", m.GetPayloadSchema())
	}
}

// An author's mistake is an error with the field to correct, and such a worker is never served.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]sdk.Worker{
		"Name":    {Name: "Feed Pull"},
		"Slots":   {Name: "a", Slots: -1},
		"Schema":  {Name: "a", Schema: `{"$ref":"#"}`},
		"LockKey": {Name: "a", LockKey: []string{""}},
	} {
		program := sdk.New(w, nothing)
		if err := program.Err(); err == nil || !strings.Contains(err.Error(), "the worker's "+want) {
			t.Errorf("%s: got %v", want, err)
		}
		if code, err := program.ServeOn(t.Context(), bufconn.Listen(1)); code != 1 || err == nil {
			t.Errorf("%s: served, with %d, %v", want, code, err)
		}
	}
	odd := sdk.New(sdk.Worker{Name: "a"}, func(context.Context, chan int) (any, error) { return nil, nil })
	if odd.Err() == nil {
		t.Error("a channel is a payload")
	}
	if err := sdk.New(sdk.Worker{Name: "a"}, nothing).Err(); err != nil {
		t.Error(err)
	}
}

// What Close says is the last that is heard of a worker, and decides its exit code.
func TestCloseFails(t *testing.T) {
	t.Parallel()
	for name, closing := range map[string]func() error{
		"error": func() error { return errors.New("flush the store") },
		"panic": func() error { panic("flush the store") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker := sdktest.Start(t, sdk.New(sdk.Worker{Name: "a", Close: closing}, nothing), sdktest.AnyExit())
			worker.Drain()
			if code := exitCode(t, worker); code != 1 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// A worker whose listener fails, or whose context has ended before, ends with it.
func TestServeOnEnds(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if code, err := sdk.New(sdk.Worker{Name: "a"}, nothing).ServeOn(ended, bufconn.Listen(1)); code != 0 || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.New(sdk.Worker{Name: "a"}, nothing).ServeOn(t.Context(), listener); err == nil {
		t.Error("it was served on a closed listener")
	}
}

// A worker finds its manager's API by the environment, and says what is wrong when it cannot.
func TestClient(t *testing.T) {
	for address, want := range map[string]string{"": "not set", "gopher://x": "gopher"} {
		t.Setenv(protocol.EnvAPI, address)
		if _, err := sdk.Client(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", address, err)
		}
	}
	t.Setenv(protocol.EnvAPI, "unix:/tmp/nobody-listens.sock")
	c, err := sdk.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func ExamplePermanent() {
	pull := func(status int) error {
		err := fmt.Errorf("the server answered %d", status)
		if status == 410 {
			return sdk.Permanent(err) // gone for good
		}
		return err // the queue decides when to try again
	}
	fmt.Println(pull(410))
	// Output: the server answered 410
}
