package controller

import (
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// attemptOf is what is remembered of a run that did not end well; false for one that did, and for one that never began
// and that nobody is to blame for.
func attemptOf(j *job.Job, o job.Outcome, manager string) (task.Attempt, bool) {
	a := task.Attempt{Number: j.Attempt(), Manager: manager, Worker: o.Worker, Started: o.Started}
	switch {
	case o.End == job.Faulted:
		a.End = task.EndFailed
	case o.End == job.Killed && o.Suspect:
		a.End = task.EndSuspect
	case o.End == job.Killed:
		a.End = task.EndKilled
	case o.End == job.Interrupted:
		a.End = task.EndInterrupted
	default:
		return a, false
	}
	if a.Started.IsZero() {
		a.Started = o.Ended
	}
	a.Run = max(0, o.Ended.Sub(a.Started))
	if o.Fault != nil {
		a.Fault, a.Message = o.Fault.Kind, o.Fault.Message
	}
	if e := o.Exit; e != nil {
		a.PID, a.Exit, a.RSS, a.Limit, a.Tail = e.PID, string(e.Reason), e.RSS, e.Limit, e.Tail
		if e.Signal != 0 {
			a.Signal = e.Signal.String()
		}
	}
	return a, true
}
