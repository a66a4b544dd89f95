package sdktest_test

import (
	"context"
	"errors"
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

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
