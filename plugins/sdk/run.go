package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Task says which run of which task a handler is working on.
type Task struct {
	ID    task.ID
	Queue string
	// Attempt is 1 for the first run.
	Attempt int
	// Deadline is when the manager ends the run; zero when it may take as long as it needs.
	Deadline time.Time
}

// run is one run of one task in this process. Its fields under state are guarded by the service's mutex.
type run struct {
	number  uint64
	task    *workerv1.Task
	queue   string
	out     *outbox
	ticket  ticket
	started bool
	ended   bool
	cancel  context.CancelCauseFunc // nil until it starts
}

type runKey struct{}

// runOf returns the run that ctx belongs to; nil outside of handlers and Configure.
func runOf(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// Info says what is run in ctx. It is zero outside of a handler.
func Info(ctx context.Context) Task {
	r := runOf(ctx)
	if r == nil || r.task == nil {
		return Task{}
	}
	id, err := task.ParseID(r.task.GetId())
	if err != nil {
		id = task.ID{Queue: r.queue, Key: r.task.GetId()}
	}
	info := Task{ID: id, Queue: id.Queue, Attempt: int(r.task.GetAttempt())}
	if ms := r.task.GetDeadlineMs(); ms > 0 {
		info.Deadline = time.UnixMilli(ms)
	}
	return info
}

// Progress reports how far the run of ctx is; total 0 means that it is not known. It never blocks: when reports come faster
// than they can be sent, only the latest is. Outside of a handler it does nothing.
func Progress(ctx context.Context, done, total uint64, note string) {
	if r := runOf(ctx); r != nil && r.task != nil {
		r.out.progress(r, done, total, note)
	}
}

// Logger returns a logger whose lines go to the manager, bound to the run of ctx, or to the process when ctx is that of
// Configure. It never blocks: lines that come faster than they can be sent are dropped and counted. Outside of both it is
// slog.Default.
func Logger(ctx context.Context) *slog.Logger {
	r := runOf(ctx)
	if r == nil {
		return slog.Default() //nolint:forbidigo // the author's own logger, outside of what Drover calls
	}
	return slog.New(newLogHandler(r.out, r.number))
}

// start prepares the context of a run; the caller holds the service's mutex.
func (r *run) start() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), runKey{}, r))
	r.cancel = cancel
	release := func() { cancel(context.Canceled) }
	if ms := r.task.GetDeadlineMs(); ms > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, time.UnixMilli(ms), ErrTimeout)
		release = func() { stop(); cancel(context.Canceled) }
	}
	return ctx, release
}

// faultOf turns a handler's error into a fault. When the context has ended before, the error is most likely the echo of
// that, in whatever words the libraries in between chose, and the cause decides the kind; only a handler that
// knows that trying again cannot help is believed.
func faultOf(ctx context.Context, err error) *fault.Fault {
	f := fault.From(err)
	if f.Permanent || ctx.Err() == nil {
		return f
	}
	c := *f
	c.Kind = kindOf(context.Cause(ctx))
	if text := context.Cause(ctx).Error(); err.Error() != text {
		c.Message = fmt.Sprintf("%s: %s", text, err)
	}
	return &c
}

// kindOf says what the end of a context means for the task.
func kindOf(cause error) fault.Kind {
	switch {
	case errors.Is(cause, ErrTimeout):
		return fault.Timeout
	case errors.Is(cause, ErrCancelled):
		return fault.Cancelled
	default:
		return fault.Interrupted
	}
}

// causeOf reads the reason of a Cancel; one that a newer manager may know is taken as a stop, which costs the task nothing.
func causeOf(reason string) error {
	switch reason {
	case "timeout":
		return ErrTimeout
	case "cancelled":
		return ErrCancelled
	default:
		return ErrStopped
	}
}
