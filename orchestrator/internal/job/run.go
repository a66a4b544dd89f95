package job

import (
	"fmt"
	"time"
)

// Limits are what a run in a process is held to. They may differ from job to job, because settings change live.
type Limits struct {
	TaskTimeout time.Duration // 0 is none
	KillGrace   time.Duration // between asking a run to end and killing its process
}

// Ends returns when a run's time is over; zero for never. It expires when that is the client's deadline, after which the task is not
// needed any more, and not a limit of how long one run may take.
func (l Limits) Ends(j *Job, started time.Time) (at time.Time, expires bool) {
	at, expires = j.Deadline, !j.Deadline.IsZero()
	for _, d := range []time.Duration{l.TaskTimeout, j.Timeout} {
		if t := started.Add(d); d > 0 && (at.IsZero() || !t.After(at)) {
			at, expires = t, false
		}
	}
	return at, expires
}

// Overtime says in words what a run was longer than that ran out of time, and what can be done about it.
func (l Limits) Overtime(j *Job) (than, advice string) {
	if j.Timeout > 0 && (l.TaskTimeout == 0 || j.Timeout < l.TaskTimeout) {
		return fmt.Sprintf("the timeout that its client gave it (%s)", j.Timeout), "submit it with a longer one if it needs more"
	}
	return fmt.Sprintf("task_timeout (%s)", l.TaskTimeout), "raise task_timeout if it needs more"
}

// Lapsed says in words that a job's deadline passed during a run.
func (j *Job) Lapsed(started time.Time) string {
	return fmt.Sprintf("its deadline, %s, passed after %s of its run", j.Deadline.UTC().Format(time.RFC3339), max(0, j.Deadline.Sub(started)).Round(time.Millisecond))
}

// Unfinished is a job that was in a process when the process ended.
type Unfinished struct {
	Job     *Job
	Started time.Time
	Limits  Limits
	// Guilty is true for the job that the process was killed for, when that is known.
	Guilty bool
	// Unbegun is true for a job of which the process never said that it had begun.
	Unbegun bool
	// Cancelled is true for a job that had been asked to end for its client.
	Cancelled bool
	// Expired is true for a job that had been asked to end because its client's deadline had passed.
	Expired bool
	// Tail is the last lines that the process wrote since the job was given to it.
	Tail []string
}
