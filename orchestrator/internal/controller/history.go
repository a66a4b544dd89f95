package controller

import (
	"strings"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
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
	case o.End == job.Expired && !o.Started.IsZero():
		a.End = task.EndExpired
	default:
		return a, false
	}
	if a.Started.IsZero() {
		a.Started = o.Ended
	}
	a.Run = max(0, o.Ended.Sub(a.Started))
	a.Tail = o.Tail
	if f := o.Fault; f != nil {
		a.Fault, a.Message = f.Kind, f.Message
		if f.Kind == fault.Panic && f.Detail != "" {
			a.Tail = firstLines(f.Detail, task.MaxAttemptTail)
		}
	}
	if e := o.Exit; e != nil {
		a.PID, a.Exit, a.RSS, a.Limit = e.PID, string(e.Reason), e.RSS, e.Limit
		if e.Signal != 0 {
			a.Signal = e.Signal.String()
		}
	}
	return a, true
}

// firstLines are as many lines from the beginning of a text as have at most n bytes. A stack begins with where it happened.
func firstLines(text string, n int) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if n -= len(line); n < 0 {
			return lines[:i]
		}
	}
	return lines
}
