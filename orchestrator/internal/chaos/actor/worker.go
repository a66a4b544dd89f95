package actor

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"
)

// Workers are the worker processes of all managers, found anew for each fault.
type Workers struct {
	program string
}

// NewWorkers returns the workers that run the program.
func NewWorkers(program string) *Workers { return &Workers{program: program} }

// Injury is what was done to one worker process.
type Injury struct {
	PID      int
	From, To int64 // the same when it was killed
}

// soon is how long a fault waits for a worker to come.
const soon = 2 * time.Second

// pick returns the process number of a worker; 0 when there is none, nor will be soon.
func (w *Workers) pick(ctx context.Context, choice uint64) int {
	var found []Found
	if until(ctx, soon, func(context.Context) error {
		if found = Running(w.program); len(found) == 0 {
			return errors.New("there is no worker")
		}
		return nil
	}) != nil {
		return 0
	}
	slices.SortFunc(found, func(a, b Found) int { return a.PID - b.PID })
	return found[choice%uint64(len(found))].PID
}

// Kill kills a worker; false when there is none.
func (w *Workers) Kill(ctx context.Context, choice uint64) (Injury, bool) {
	pid := w.pick(ctx, choice)
	if pid == 0 || syscall.Kill(pid, syscall.SIGKILL) != nil {
		return Injury{}, false
	}
	now := Now()
	return Injury{PID: pid, From: now, To: now}, true
}

// FreezeFor stops a worker for a while, or until ctx ends; false when there is none.
func (w *Workers) FreezeFor(ctx context.Context, choice uint64, d time.Duration) (Injury, bool) {
	pid := w.pick(ctx, choice)
	if pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return Injury{}, false
	}
	injury := Injury{PID: pid, From: Now()}
	_ = Rest(ctx, d) // it must go on in any case
	if slices.ContainsFunc(Running(w.program), func(f Found) bool { return f.PID == pid }) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	injury.To = Now()
	return injury, true
}
