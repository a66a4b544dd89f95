package sdktest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
)

// waiting is a worker whose tasks end with their context only.
func waiting() *sdk.Program {
	return sdk.New(sdk.Worker{Name: "wait"}, func(ctx context.Context, _ struct{}) (any, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
}

// A test's own context ends a run as a manager would: its deadline is a timeout, its end a cancel.
func TestRunFollowsItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker := sdktest.Start(t, waiting())
		late, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stopped, stop := context.WithCancel(t.Context())
		stop()
		for ctx, want := range map[context.Context]fault.Kind{late: fault.Timeout, stopped: fault.Cancelled} {
			var f *fault.Fault
			if _, err := worker.Run(ctx, `{}`); !errors.As(err, &f) || f.Kind != want {
				t.Errorf("got %v, want %v", err, want)
			}
		}
	})
}

// A run that is left open when the worker goes has an error, not a hang.
func TestRunsEndWithTheWorker(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, waiting(), sdktest.AnyExit())
	run := worker.Begin(`{}`)
	worker.HangUp()
	if _, err := run.Wait(); err == nil {
		t.Error("a run without an outcome succeeded")
	}
	if _, err := worker.Run(t.Context(), `{}`); err == nil {
		t.Error("a task after the end succeeded")
	}
	if code, err := worker.Exit(t.Context()); err != nil || code != 1 {
		t.Errorf("exit code %d, %v", code, err)
	}
	if _, err := worker.Stacks(canceled(t)); err == nil {
		t.Error("a worker that has ended sent its stacks")
	}
}

// A payload that breaks the worker's schema gets the answer that a manager gives, unless the test asks for the worker's own.
func TestPayloadsAreChecked(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, sdk.New(sdk.Worker{Name: "greet"}, greet))
	for payload, part := range map[string]string{`{"name":"Ada","first_name":"x"}`: "first_name", `{}`: "name", `{"name":1}`: "name", `[]`: "object"} {
		var f *fault.Fault
		if _, err := worker.Run(t.Context(), payload); !errors.As(err, &f) || f.Kind != fault.InvalidPayload || !f.Permanent || !strings.Contains(f.Message, part) {
			t.Errorf("%s: got %v, want a permanent fault that names %s", payload, err, part)
		}
	}
	result, err := worker.Run(t.Context(), `{"name":"Ada","first_name":"x"}`, sdktest.Unchecked())
	if err != nil || string(result) != `"hello Ada"` {
		t.Errorf("unchecked: got %s, %v", result, err)
	}
}

// heard is a *testing.T that keeps what would fail the test.
type heard struct {
	recorder
	errors []string
}

func (h *heard) Errorf(f string, a ...any) { h.errors = append(h.errors, fmt.Sprintf(f, a...)) }

// A panic that the test did not expect fails it, and the message names the option for one that does.
func TestPanicNamesItsOption(t *testing.T) {
	t.Parallel()
	h := &heard{}
	worker := sdktest.Start(h, sdk.New(sdk.Worker{Name: "greet"}, func(context.Context, greeting) (string, error) { panic("at the disco") }))
	_, err := worker.Run(t.Context(), greeting{Name: "Ada"})
	var f *fault.Fault
	if !errors.As(err, &f) || f.Kind != fault.Panic {
		t.Errorf("got %v", err)
	}
	h.end()
	if len(h.errors) != 1 || !strings.Contains(h.errors[0], "sdktest.AnyExit()") {
		t.Errorf("got %q", h.errors)
	}
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
