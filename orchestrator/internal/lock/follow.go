package lock

import (
	"context"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// follow waits for the end of the task that has the job's lock, in a goroutine, unless that is being done. The caller holds mu.
func (l *Locker) follow(e *entry) {
	holder := e.holder
	id := holder.Task
	if e.stopFollow != nil && e.following == id {
		return
	}
	l.unfollow(e)
	if id.IsZero() || holder.same(e.fruitless) {
		return // its end says nothing: only the lock does
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.stopFollow, e.following = cancel, id
	l.follows++
	go func() {
		ended, err := l.Waiter.Wait(ctx, id)
		l.followed(e, holder, ended, err)
		cancel()
	}()
}

// unfollow ends the waiting for another task's end. The caller holds mu.
func (l *Locker) unfollow(e *entry) {
	if e.stopFollow != nil {
		e.stopFollow()
		e.stopFollow, e.following = nil, task.ID{}
	}
}

// followed takes the end of a task that a job waited for, or the news that it cannot be told.
func (l *Locker) followed(e *entry, holder Holder, ended *task.Task, err error) {
	l.mu.Lock()
	l.follows--
	if l.stopping {
		l.poke()
	}
	if l.entries[e.job] != e || e.following != holder.Task { // it has gone, or waits for another by now
		l.mu.Unlock()
		return
	}
	l.unfollow(e)
	o, shared := outcomeOf(ended, holder.Since)
	switch {
	case err == nil && shared && e.phase != passing && e.phase != passed:
		// Also while its lock is being taken: the taker gives it up again.
		l.forget(e)
		l.mu.Unlock()
		l.Ender.End(e.job, o)
		return
	case e.phase == settling:
		e.due = time.Now()
		l.wake(e.due)
	case err == nil: // the holder did not do the work: it is ours
		e.fruitless = holder
		if e.phase == waiting {
			e.due = time.Now()
			l.wake(e.due)
		}
	}
	l.mu.Unlock()
}

// recordPrecision is how exact the times in a record are, at worst.
const recordPrecision = 10 * time.Millisecond

// outcomeOf is what the end of a holder, which took its lock at since, means for a job that joined it. It is false when the end
// says nothing of the work: the holder was cancelled, dropped, or has expired, or it is the end of an earlier task of the same ID.
func outcomeOf(t *task.Task, since time.Time) (job.Outcome, bool) {
	if t == nil || t.Ended.Before(since.Add(-recordPrecision)) {
		return job.Outcome{}, false
	}
	o := job.Outcome{Ended: time.Now()}
	switch t.State {
	case task.Completed:
		o.End, o.Result = job.Succeeded, t.Result
		return o, true
	case task.Dead, task.Quarantined:
		f := fault.New(fault.Failed, "failed without saying why")
		if t.Fault != nil {
			f = t.Fault
		}
		joined := f.AsPermanent()
		joined.Message = "it joined task " + t.ID.String() + ", which ended " + t.State.String() + ": " + f.Message
		o.End, o.Fault = job.Faulted, joined
		return o, true
	default:
		return o, false
	}
}
