package clienttest

import (
	"context"
	"errors"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

func cancelTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"cancel/a waiting task ends at once": cancelWaiting,
		"cancel/a running task is stopped":   cancelRunning,
		"cancel/an ended task stays ended":   cancelEnded,
	}
}

func closeTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"close/ends a wait in progress":   closeDuringWait,
		"close/nothing works afterwards":  closed,
		"close/twice is once, and no one": closeTwice,
	}
}

// Cancelling a task that waits ends it then and there, for those who wait for it too, and leaves a record.
func cancelWaiting(t *suite) {
	ctx := t.limit()
	p := Payload{Do: "return", Value: nonce()}
	s := t.submit(ctx, p, client.Delay(time.Hour))
	ended := make(chan *task.Task, 1)
	go func() {
		got, err := client.Wait(ctx, t.Client, s.ID)
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		ended <- got
	}()
	state, err := t.Client.Cancel(ctx, s.ID)
	if err != nil || state != task.Cancelled {
		t.Errorf("cancel gave %s, %v; want cancelled", state, err)
	}
	if got := <-ended; got == nil || got.State != task.Cancelled || got.Fault == nil || got.Fault.Kind != fault.Cancelled || got.Ended.IsZero() {
		t.Errorf("who waited got %+v, want a cancelled task", got)
	}
	if got, err := t.Client.Get(ctx, s.ID); err != nil || got.State != task.Cancelled || got.Attempts != 0 {
		t.Errorf("get gave %+v, %v; want a cancelled task that never ran", got, err)
	}
	if again := t.submit(ctx, p); again.Joined {
		t.Error("a cancelled task was joined")
	} else if got := t.wait(ctx, again.ID); got.State != task.Completed {
		t.Errorf("submitted again it ended as %s, want completed", got.State)
	}
}

// Cancelling a task that runs says so, and the task ends cancelled long before it would have by itself.
func cancelRunning(t *suite) {
	ctx := t.limit()
	s := t.submit(ctx, Payload{Do: "sleep", Value: nonce(), MS: 600_000})
	t.until(ctx, s.ID, task.Running)
	state, err := t.Client.Cancel(ctx, s.ID)
	if err != nil || (state != task.Running && state != task.Cancelled) {
		t.Errorf("cancel gave %s, %v; want running or cancelled", state, err)
	}
	if got := t.wait(ctx, s.ID); got.State != task.Cancelled {
		t.Errorf("it ended as %s with %v, want cancelled", got.State, got.Fault)
	}
}

// Cancelling a task that has ended changes nothing and says how it ended.
func cancelEnded(t *suite) {
	ctx := t.limit()
	for do, want := range map[string]task.State{"return": task.Completed, "permanent": task.Dead} {
		s := t.submit(ctx, Payload{Do: do, Note: nonce()})
		t.wait(ctx, s.ID)
		if state, err := t.Client.Cancel(ctx, s.ID); err != nil || state != want {
			t.Errorf("cancel gave %s, %v; want %s", state, err, want)
		}
		if got, err := t.Client.Get(ctx, s.ID); err != nil || got.State != want {
			t.Errorf("get gave %+v, %v; want %s", got, err, want)
		}
	}
}

// Close ends a wait that is in progress with ErrClosed, soon.
func closeDuringWait(t *suite) {
	ctx := t.limit()
	s := t.submit(ctx, Payload{Do: "return", Value: nonce()}, client.Delay(20*time.Second))
	other := t.submit(ctx, Payload{Do: "progress", Value: nonce(), MS: 4000})
	following, result := make(chan struct{}), make(chan error, 1)
	go func() {
		var once bool
		for u, err := range t.Client.Subscribe(ctx, []task.ID{s.ID, other.ID}, client.WithEvents()) {
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
	if err := t.Client.Close(); err != nil {
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
func closed(t *suite) {
	ctx := t.limit()
	if err := t.Client.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	id := task.RandomID(t.Queue)
	calls := map[string]func(context.Context) error{
		"submit": func(ctx context.Context) error {
			_, err := t.Client.Submit(ctx, t.Queue, Payload{Do: "return", Value: nonce()})
			return err
		},
		"get":    func(ctx context.Context) error { _, err := t.Client.Get(ctx, id); return err },
		"cancel": func(ctx context.Context) error { _, err := t.Client.Cancel(ctx, id); return err },
		"wait":   func(ctx context.Context) error { _, err := client.Wait(ctx, t.Client, id); return err },
	}
	for name, call := range calls {
		if err := call(ctx); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s gave %v, want ErrClosed", name, err)
		}
	}
}

// Closing twice is no error.
func closeTwice(t *suite) {
	for range 2 {
		if err := t.Client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
