package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Run is one run of one task.
type Run struct {
	worker *Worker
	number uint64
	begun  chan struct{} // closed when the worker has said that it began, or its outcome is here
	ended  chan struct{} // closed when the outcome is here, or will never be

	// Guarded by the worker's mutex.
	started  bool
	over     bool
	progress []task.Progress
	result   json.RawMessage
	err      error
}

// Log is one structured line of a worker.
type Log struct {
	// Run is the run that it belongs to; nil when it belongs to none.
	Run        *Run
	Level      slog.Level
	Message    string
	Attributes map[string]any
}

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
	case <-r.ended:
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
	r := &Run{worker: w, begun: make(chan struct{}), ended: make(chan struct{})}
	d := draft{task: &workerv1.Task{Id: task.RandomID(w.queue).String(), Kind: w.kind, Payload: text(w.t, payload), Attempt: 1}}
	for _, option := range opts {
		option(&d)
	}
	if f := w.refusal(&d); f != nil {
		r.end(nil, f)
		return r
	}
	if !w.book(r) {
		w.t.Fatal("a task needs the Work stream: call Configure and Open before")
	}
	d.task.Run = r.number
	w.Send(&workerv1.Instruction{Kind: &workerv1.Instruction_Task{Task: d.task}})
	return r
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

// book gives a run its number; it reports false when there is no stream yet.
func (w *Worker) book(r *Run) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	r.number = w.next
	if w.gone != nil {
		r.end(nil, w.gone)
	} else {
		w.runs[r.number] = r
	}
	return w.stream != nil
}

// Cancel asks the worker to end the run. The reason is "timeout", "cancelled" or "stop".
func (r *Run) Cancel(reason string) {
	r.worker.Send(&workerv1.Instruction{Kind: &workerv1.Instruction_Cancel{Cancel: &workerv1.Cancel{Run: r.number, Reason: reason}}})
}

// Begun is closed once the worker has begun the run.
func (r *Run) Begun() <-chan struct{} { return r.begun }

// Ended is closed once the run has its outcome.
func (r *Run) Ended() <-chan struct{} { return r.ended }

// Wait returns the outcome: the result, or a *fault.Fault, or another error when the worker went without an outcome.
func (r *Run) Wait() (json.RawMessage, error) {
	<-r.ended
	return r.result, r.err
}

// Progress returns the progress reports so far. A worker that reports faster than they can be sent sends the latest only.
func (r *Run) Progress() []task.Progress {
	r.worker.mu.Lock()
	defer r.worker.mu.Unlock()
	return append([]task.Progress(nil), r.progress...)
}

// Logs returns the lines that the run has logged so far.
func (r *Run) Logs() []Log {
	var own []Log
	for _, line := range r.worker.Logs() {
		if line.Run == r {
			own = append(own, line)
		}
	}
	return own
}

// begin and end are called with the worker's mutex held.
func (r *Run) begin() {
	if !r.started {
		r.started = true
		close(r.begun)
	}
}

func (r *Run) end(result json.RawMessage, err error) {
	if r.over {
		return
	}
	r.over = true
	r.result, r.err = result, err
	r.begin()
	close(r.ended)
}

// outcome reads how a run ended.
func outcome(o *workerv1.Outcome) (json.RawMessage, error) {
	switch end := o.GetEnd().(type) {
	case *workerv1.Outcome_Result:
		return end.Result, nil
	case *workerv1.Outcome_Fault:
		return nil, fault.FromProto(end.Fault)
	default:
		return nil, fmt.Errorf("the worker sent an outcome without an end for run %d", o.GetRun())
	}
}
