// Package job is one task while it is in this process, and the words in which the stages speak of it.
//
// Work goes down as a Job: intake makes it, the pool gives it to a worker, the worker's Outcome goes to the controller, which
// decides a Verdict, and intake carries the verdict out in Redis. A Job is decided exactly once. The package is a leaf: it
// owns no connection, no process and no policy, and starts nothing.
package job

import (
	"sync/atomic"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// Job is one task that this manager has taken.
type Job struct {
	ID       task.ID
	Kind     string
	Payload  []byte
	Counters task.Counters // as they were when it was taken
	// Submitted is when the client handed it over; zero for clients that do not say.
	Submitted time.Time
	// History is its last runs that did not end well, the oldest first.
	History []task.Attempt
	// Pending is since when it could have been taken; Received is when it was.
	Pending, Received time.Time
	// Suspect is true for a task that was in a process with others when that died: this time it runs alone in one, so that
	// it is known whose fault it is.
	Suspect bool
	// KeepRecord is for how long the client wants the record of the end to be kept; nil leaves it to the queue.
	KeepRecord *time.Duration
	// Deadline is when the task must have ended by the client's wish; zero for none. After it nobody needs the task any more.
	Deadline time.Time
	// Timeout is how long one run may take by the client's wish, besides task_timeout; 0 for none. Clients of asynq ask for that.
	Timeout time.Duration

	decided atomic.Bool
	verdict chan Verdict
}

// New returns a job that waits for its verdict.
func New(id task.ID, kind string, payload []byte) *Job {
	return &Job{ID: id, Kind: kind, Payload: payload, verdict: make(chan Verdict, 1)}
}

// Attempt is the number of this run: 1 for the first.
func (j *Job) Attempt() int {
	return j.Counters.Failures + j.Counters.Kills + j.Counters.Interruptions + j.Counters.Losses + 1
}

// Decide gives the job its verdict. It reports false, and changes nothing, when it has one already.
func (j *Job) Decide(v Verdict) bool {
	if !j.decided.CompareAndSwap(false, true) {
		return false
	}
	j.verdict <- v
	return true
}

// Verdict yields the verdict once it has been decided. It has one reader.
func (j *Job) Verdict() <-chan Verdict { return j.verdict }
