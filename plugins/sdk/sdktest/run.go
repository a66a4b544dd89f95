package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk/sdktest/session"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Run is one run of one task.
type Run = session.Run

// Log is one structured line of a worker.
type Log = session.Log

// TaskOption changes the task of a run.
type TaskOption func(*draft)

// draft is a task before it is sent.
type draft struct {
	task      *workerv1.Task
	unchecked bool
}

// ID sets the task's ID; the default is one that no other task has.
func ID(id task.ID) TaskOption { return func(d *draft) { d.task.Id = id.String() } }

// Attempt sets which run of the task this is; the default is 1.
func Attempt(n int) TaskOption {
	return func(d *draft) { d.task.Attempt = uint32(max(0, n)) } //nolint:gosec // not negative
}

// Deadline sets when the run is to be over; the default is never.
func Deadline(at time.Time) TaskOption {
	return func(d *draft) { d.task.DeadlineMs = at.UnixMilli() }
}

// Kind sets the task's kind; the default is the worker's.
func Kind(kind string) TaskOption { return func(d *draft) { d.task.Kind = kind } }

// Unchecked sends the payload even if it breaks the worker's schema, for tests of how the worker itself takes what no manager
// would give it.
func Unchecked() TaskOption { return func(d *draft) { d.unchecked = true } }

// Run runs a task to its end and returns its result, or its fault as a *fault.Fault. When ctx ends first, the run is
// cancelled, as a manager does, and its outcome awaited. A payload that breaks the worker's schema does not reach the worker:
// as from a manager, the answer is a permanent fault of kind InvalidPayload.
func (w *Worker) Run(ctx context.Context, payload any, opts ...TaskOption) (json.RawMessage, error) {
	w.t.Helper()
	r := w.Begin(payload, opts...)
	select {
	case <-r.Ended():
	case <-ctx.Done():
		reason := "cancelled"
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			reason = "timeout"
		}
		r.Cancel(reason)
	}
	return r.Wait()
}

// Begin sends a task and returns at once. The payload is JSON text as a string, []byte or json.RawMessage, or anything that
// encoding/json turns into JSON; it is checked as Run says.
func (w *Worker) Begin(payload any, opts ...TaskOption) *Run {
	w.t.Helper()
	d := draft{task: &workerv1.Task{Id: task.RandomID(w.queue).String(), Kind: w.kind, Payload: text(w.t, payload), Attempt: 1}}
	for _, option := range opts {
		option(&d)
	}
	if f := w.refusal(&d); f != nil {
		return session.Refused(f)
	}
	if !w.session.Opened() {
		w.t.Fatal("a task needs the Work stream: call Configure and Open before")
	}
	return w.session.Begin(d.task)
}

// refusal is the fault with which a manager ends a task instead of handing it to the worker; nil when it hands it over. A task
// of another kind is left to the worker to refuse.
func (w *Worker) refusal(d *draft) *fault.Fault {
	if d.unchecked || d.task.GetKind() != w.kind {
		return nil
	}
	if err := w.schema.Check(d.task.GetPayload()); err != nil {
		return fault.New(fault.InvalidPayload, "%s", err.Error()).AsPermanent()
	}
	return nil
}
