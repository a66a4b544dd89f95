package lock

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/fault"
)

const (
	storePause    = 250 * time.Millisecond // before a store that did not answer is tried again, doubled up to storePauseMax
	storePauseMax = 2 * time.Second
	ownPause      = 500 * time.Millisecond // before a lock of the task's own earlier run is tried again
	asidePause    = time.Second            // before a lock that another has is tried again, doubled up to asidePauseMax
	asidePauseMax = 10 * time.Second
	perWaiting    = 200 * time.Microsecond // what each job that this manager holds adds to a pause, so that many do not spin
)

// decide does what follows from the answer of the store for a job. The caller holds mu; decide unlocks it.
func (l *Locker) decide(e *entry, held bool, current Holder, err error, q settings.Queue) {
	switch {
	case held && e.stopFollow != nil:
		e.phase = settling
		l.waitUntil(e, endGrace)
	case held:
		l.pass(e)
		return
	case err != nil && q.LockMissing == settings.LockMissingRun:
		l.giveUp(e) // if it was taken all the same
		l.pass(e)
		return
	case err != nil:
		l.waitUntil(e, pause(e.tries, storePause, storePauseMax))
	case current.Task == e.job.ID && l.stepAside(e):
		e.holder = current
		l.waitUntil(e, ownPause)
	case q.LockPolicy == settings.LockJoin && current.Task != e.job.ID && l.stepAside(e):
		if !e.holder.same(current) {
			e.tries = 0
		}
		e.holder = current
		l.follow(e)
		l.waitUntil(e, pause(e.tries, asidePause, asidePauseMax))
	default:
		skip := q.LockPolicy == settings.LockSkip && current.Task != e.job.ID
		l.forget(e)
		l.mu.Unlock()
		l.Ender.End(e.job, heldElsewhere(current, skip, q.RetryBackoff))
		return
	}
	l.mu.Unlock()
}

// waitUntil lets a job wait for d, or until its deadline. The caller holds mu.
func (l *Locker) waitUntil(e *entry, d time.Duration) {
	if e.phase != settling {
		e.phase = waiting
	}
	e.tries++
	e.due = time.Now().Add(d)
	if e.phase == waiting {
		e.due = e.due.Add(time.Duration(len(l.entries)) * perWaiting)
	}
	if !e.job.Deadline.IsZero() && e.job.Deadline.Before(e.due) {
		e.due = e.job.Deadline
	}
	l.wake(e.due)
}

// pause is the wait before the next try: doubled with each, and spread by up to a half, so that what came together does not
// try together.
func pause(tries int, first, most time.Duration) time.Duration {
	d := first
	for range tries {
		if d *= 2; d >= most {
			d = most
			break
		}
	}
	return d + time.Duration(float64(d)*rand.Float64()/2) //nolint:gosec // spreads load, hides nothing
}

// heldElsewhere is the outcome of a job whose lock another has and that does not wait for it.
func heldElsewhere(current Holder, skip bool, delay time.Duration) job.Outcome {
	who := "another task"
	if !current.Task.IsZero() {
		who = fmt.Sprintf("task %s on manager %s", current.Task, current.Manager)
	}
	if skip {
		return job.Outcome{
			End: job.Succeeded, Result: []byte("null"), Ended: time.Now(),
			Fault: fault.New(fault.Skipped, "not run: %s has its lock, and lock_policy is skip", who),
		}
	}
	f := fault.New(fault.Unavailable, "%s has its lock; it is tried again later", who)
	return job.Outcome{End: job.Returned, Ended: time.Now(), Fault: f.WithRetryAfter(max(time.Second, delay))}
}

// expired is the outcome of a job whose client's deadline passed while it waited for its lock.
func expired(j *job.Job) job.Outcome {
	f := fault.New(fault.Timeout, "its deadline, %s, passed while it waited for its lock", j.Deadline.UTC().Format(time.RFC3339))
	return job.Outcome{End: job.Expired, Fault: f, Ended: time.Now()}
}
