package session

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Run is one run of one task.
type Run struct {
	session *Session // nil when the task never reached the worker
	number  uint64
	begun   chan struct{} // closed when the worker has said that it began, or its outcome is here
	ended   chan struct{} // closed when the outcome is here, or will never be

	// Guarded by the session's mutex.
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

// Refused returns the run of a task that a manager ends without a worker.
func Refused(f *fault.Fault) *Run {
	r := &Run{begun: make(chan struct{}), ended: make(chan struct{})}
	r.end(nil, f)
	return r
}

// Cancel asks the worker to end the run. The reason is "timeout", "cancelled" or "stop".
func (r *Run) Cancel(reason string) {
	if r.session != nil {
		r.session.Send(&workerv1.Instruction{Kind: &workerv1.Instruction_Cancel{Cancel: &workerv1.Cancel{Run: r.number, Reason: reason}}})
	}
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
	if r.session == nil {
		return nil
	}
	r.session.mu.Lock()
	defer r.session.mu.Unlock()
	return append([]task.Progress(nil), r.progress...)
}

// Logs returns the lines that the run has logged so far.
func (r *Run) Logs() []Log {
	if r.session == nil {
		return nil
	}
	var own []Log
	for _, line := range r.session.Logs() {
		if line.Run == r {
			own = append(own, line)
		}
	}
	return own
}

// begin and end are called with the session's mutex held, if there is a session.
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
