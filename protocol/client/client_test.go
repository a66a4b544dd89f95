package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// fake yields what it is told to.
type fake struct {
	client.Client
	updates []client.Update
	err     error
}

func (f fake) Subscribe(context.Context, []task.ID, ...client.FollowOption) iter.Seq2[client.Update, error] {
	return func(yield func(client.Update, error) bool) {
		for _, u := range f.updates {
			if !yield(u, nil) {
				return
			}
		}
		if f.err != nil {
			yield(client.Update{}, f.err)
		}
	}
}

// WaitAll returns the records in the order asked for, and an error rather than a list with holes.
func TestWaitAll(t *testing.T) {
	t.Parallel()
	a, b := task.ID{Queue: "q", Key: "a"}, task.ID{Queue: "q", Key: "b"}
	endA, endB := client.Update{ID: a, Ended: &task.Task{ID: a}}, client.Update{ID: b, Ended: &task.Task{ID: b}}
	tests := []struct {
		name string
		fake fake
		err  error
	}{
		{"all end", fake{updates: []client.Update{endB, endA}}, nil},
		{"one is unknown", fake{updates: []client.Update{endB, {ID: a, Unknown: true}}}, client.ErrUnknownTask},
		{"the subscription fails", fake{updates: []client.Update{endB}, err: client.ErrUnavailable}, client.ErrUnavailable},
		{"the subscription ends early", fake{updates: []client.Update{endB}}, client.ErrUnavailable},
	}
	for _, test := range tests {
		got, err := client.WaitAll(t.Context(), test.fake, a, b)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: the error is %v, want %v", test.name, err, test.err)
		}
		if test.err == nil && (len(got) != 2 || got[0].ID != a || got[1].ID != b) {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
}

// flaky submits, and cannot be waited on before the last of so many tries.
type flaky struct {
	fake
	refusals int
}

func (*flaky) Submit(context.Context, string, any, ...client.Option) (client.Submitted, error) {
	return client.Submitted{ID: task.ID{Queue: "q", Key: "a"}}, nil
}

func (f *flaky) Subscribe(ctx context.Context, ids []task.ID, options ...client.FollowOption) iter.Seq2[client.Update, error] {
	if f.refusals--; f.refusals >= 0 {
		return fake{err: client.ErrNoManager}.Subscribe(ctx, ids, options...)
	}
	return f.fake.Subscribe(ctx, ids, options...)
}

// A call whose task was submitted goes on waiting when the manager or Redis goes right then, and comes back for its result, at its
// deadline at the latest.
func TestCallOutlastsAnAbsence(t *testing.T) {
	t.Parallel()
	a := task.ID{Queue: "q", Key: "a"}
	end := client.Update{ID: a, Ended: &task.Task{ID: a, State: task.Completed, Manager: "m", Result: []byte("7")}}
	synctest.Test(t, func(t *testing.T) {
		if got, err := client.Call[int](t.Context(), &flaky{fake: fake{updates: []client.Update{end}}, refusals: 5}, "q", nil); err != nil || got != 7 {
			t.Errorf("call gave %d, %v", got, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := client.Call[int](ctx, &flaky{refusals: 1000}, "q", nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 10*time.Second {
			t.Errorf("call gave %v after %s", err, time.Since(began))
		}
	})
}

// Options say what was asked for; a delay that is not positive is none.
func TestOptions(t *testing.T) {
	t.Parallel()
	if o := client.Apply(nil); o.NotUnique || o.Delay != 0 {
		t.Errorf("no options are %+v", o)
	}
	if o := client.Apply([]client.Option{client.Unique(false), client.Delay(time.Second)}); !o.NotUnique || o.Delay != time.Second {
		t.Errorf("the options are %+v", o)
	}
	if o := client.Apply([]client.Option{client.Delay(-time.Second), client.Unique(true)}); o.NotUnique || o.Delay != 0 {
		t.Errorf("the options are %+v", o)
	}
	if client.ApplyFollow(nil).Events || !client.ApplyFollow([]client.FollowOption{client.WithEvents()}).Events {
		t.Error("WithEvents does not make the difference")
	}
}

// Raw JSON goes as it is, other values without escapes that would count against the bound.
func TestEncodePayload(t *testing.T) {
	t.Parallel()
	for want, payload := range map[string]any{
		`{ "a": 1 }`:      json.RawMessage(`{ "a": 1 }`),
		`{"u":"a<b&c>d"}`: map[string]string{"u": "a<b&c>d"},
		`null`:            nil,
	} {
		if got, err := client.EncodePayload(payload); err != nil || string(got) != want {
			t.Errorf("%v became %s, %v; want %s", payload, got, err, want)
		}
	}
	if _, err := client.EncodePayload(func() {}); err == nil {
		t.Error("a function was written as JSON")
	}
}

// An address that is none is refused with examples; one that is, is taken without connecting.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"unix:/run/drover.sock": true, "unix:var/drover.sock": true, "unix:///run/drover.sock": true, "http://127.0.0.1:80": true, "http://[::1]:80/": true,
		"": false, "unix:": false, "http://": false, "http://host": false, "https://host:1": true, "http://u:p@host:1": false,
		"http://host:1/path": false, "/run/drover.sock": false, "127.0.0.1:80": false, "http://host:1\x00": false,
	} {
		c, err := client.Dial(address)
		if good != (err == nil) {
			t.Errorf("%q gave %v", address, err)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "address of a manager") {
				t.Errorf("%q gave %v, which does not say what an address is", address, err)
			}
			continue
		}
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
