package clienttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

func cancelTests() map[string]func(*testing.T, Env) {
	return map[string]func(*testing.T, Env){
		"cancel/a waiting task ends at once": cancelWaiting,
		"cancel/a running task is stopped":   cancelRunning,
		"cancel/an ended task stays ended":   cancelEnded,
	}
}

func closeTests() map[string]func(*testing.T, Env) {
	return map[string]func(*testing.T, Env){
		"close/ends a wait in progress":   closeDuringWait,
		"close/nothing works afterwards":  closed,
		"close/twice is once, and no one": closeTwice,
	}
}

// Cancelling a task that waits ends it then and there, for those who wait for it too, and leaves a record.
func cancelWaiting(t *testing.T, env Env) {
	ctx := env.limit(t)
	p := Payload{Do: "return", Value: nonce()}
	s := env.submit(ctx, t, p, client.Delay(time.Hour))
	ended := make(chan *task.Task, 1)
	go func() {
		got, err := client.Wait(ctx, env.Client, s.ID)
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		ended <- got
	}()
	state, err := env.Client.Cancel(ctx, s.ID)
	if err != nil || state != task.Cancelled {
		t.Errorf("cancel gave %s, %v; want cancelled", state, err)
	}
	if got := <-ended; got == nil || got.State != task.Cancelled || got.Fault == nil || got.Fault.Kind != fault.Cancelled || got.Ended.IsZero() {
		t.Errorf("who waited got %+v, want a cancelled task", got)
	}
	if got, err := env.Client.Get(ctx, s.ID); err != nil || got.State != task.Cancelled || got.Attempts != 0 {
		t.Errorf("get gave %+v, %v; want a cancelled task that never ran", got, err)
	}
	if again := env.submit(ctx, t, p); again.Joined {
		t.Error("a cancelled task was joined")
	} else if got := env.wait(ctx, t, again.ID); got.State != task.Completed {
		t.Errorf("submitted again it ended as %s, want completed", got.State)
	}
}

// Cancelling a task that runs says so, and the task ends cancelled long before it would have by itself.
func cancelRunning(t *testing.T, env Env) {
	ctx := env.limit(t)
	s := env.submit(ctx, t, Payload{Do: "sleep", Value: nonce(), MS: 600_000})
	env.until(ctx, t, s.ID, task.Running)
	state, err := env.Client.Cancel(ctx, s.ID)
	if err != nil || (state != task.Running && state != task.Cancelled) {
		t.Errorf("cancel gave %s, %v; want running or cancelled", state, err)
	}
	if got := env.wait(ctx, t, s.ID); got.State != task.Cancelled {
		t.Errorf("it ended as %s with %v, want cancelled", got.State, got.Fault)
	}
}

// Cancelling a task that has ended changes nothing and says how it ended.
func cancelEnded(t *testing.T, env Env) {
	ctx := env.limit(t)
	for do, want := range map[string]task.State{"return": task.Completed, "permanent": task.Dead} {
		s := env.submit(ctx, t, Payload{Do: do, Note: nonce()})
		env.wait(ctx, t, s.ID)
		if state, err := env.Client.Cancel(ctx, s.ID); err != nil || state != want {
			t.Errorf("cancel gave %s, %v; want %s", state, err, want)
		}
		if got, err := env.Client.Get(ctx, s.ID); err != nil || got.State != want {
			t.Errorf("get gave %+v, %v; want %s", got, err, want)
		}
	}
}

// Close ends a wait that is in progress with ErrClosed, soon.
func closeDuringWait(t *testing.T, env Env) {
	ctx := env.limit(t)
	s := env.submit(ctx, t, Payload{Do: "return", Value: nonce()}, client.Delay(20*time.Second))
	other := env.submit(ctx, t, Payload{Do: "progress", Value: nonce(), MS: 4000})
	following, result := make(chan struct{}), make(chan error, 1)
	go func() {
		var once bool
		for u, err := range env.Client.Subscribe(ctx, []task.ID{s.ID, other.ID}, client.WithEvents()) {
			if err != nil {
				result <- err
				return
			}
			if u.Event != nil && !once {
				once = true
				close(following)
			}
		}
		result <- nil
	}()
	select {
	case <-following:
	case <-ctx.Done():
		t.Fatal("no event came")
	}
	if err := env.Client.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	select {
	case err := <-result:
		if !errors.Is(err, client.ErrClosed) {
			t.Errorf("the wait ended with %v, want ErrClosed", err)
		}
	case <-ctx.Done():
		t.Error("the wait outlived Close")
	}
}

// After Close every call is refused with ErrClosed.
func closed(t *testing.T, env Env) {
	ctx := env.limit(t)
	if err := env.Client.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	id := task.RandomID(env.Queue)
	calls := map[string]func(context.Context) error{
		"submit": func(ctx context.Context) error {
			_, err := env.Client.Submit(ctx, env.Queue, Payload{Do: "return", Value: nonce()})
			return err
		},
		"get":    func(ctx context.Context) error { _, err := env.Client.Get(ctx, id); return err },
		"cancel": func(ctx context.Context) error { _, err := env.Client.Cancel(ctx, id); return err },
		"wait":   func(ctx context.Context) error { _, err := client.Wait(ctx, env.Client, id); return err },
	}
	for name, call := range calls {
		if err := call(ctx); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s gave %v, want ErrClosed", name, err)
		}
	}
}

// Closing twice is no error.
func closeTwice(t *testing.T, env Env) {
	for range 2 {
		if err := env.Client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
