package lock

import (
	"context"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// enqueue lets a job's lock be taken. The caller holds mu.
func (l *Locker) enqueue(e *entry) {
	e.phase = queued
	l.work = append(l.work, e)
	l.employ()
}

// employ starts a taker if there are not enough. The caller holds mu.
func (l *Locker) employ() {
	if l.takers < maxTakers {
		l.takers++
		go l.take()
	}
}

// take takes and releases locks until there is nothing to do. Releases come first: others wait for them.
func (l *Locker) take() {
	for {
		l.mu.Lock()
		switch {
		case len(l.releases) > 0:
			lease := l.releases[0]
			l.releases = l.releases[1:]
			l.mu.Unlock()
			l.release(lease)
		case len(l.work) > 0:
			e := l.work[0]
			l.work = l.work[1:]
			if l.entries[e.job] != e { // forgotten meanwhile
				l.mu.Unlock()
				continue
			}
			e.phase, e.touched = taking, true
			l.mu.Unlock()
			l.acquire(e)
		default:
			l.work, l.releases = nil, nil
			l.takers--
			if l.stopping {
				l.poke()
			}
			l.mu.Unlock()
			return
		}
	}
}

// release gives up a lock. One that cannot be released ends by itself.
func (l *Locker) release(lease Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	err := l.Store.Release(ctx, lease.Key, lease.Token)
	if err != nil {
		l.Log.Debug("a lock could not be released; it ends by itself", "lock", lease.Key, "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(err, time.Now())
	if err == nil {
		l.next(lease.Key)
	}
}

// next lets the job that has waited longest here for a lock try it soon: its holder may have ended without doing the work, to be
// tried again in an hour. Should it have done it, those who joined are told so first. The caller holds mu.
func (l *Locker) next(key Key) {
	if l.aside == 0 {
		return
	}
	var first *entry
	for _, e := range l.entries {
		if e.phase == waiting && e.key == key && (first == nil || e.number < first.number) {
			first = e
		}
	}
	if soon := time.Now().Add(endGrace); first != nil && soon.Before(first.due) {
		first.due = soon
		l.wake(soon)
	}
}

// acquire tries to take a job's lock and does what follows from the answer.
func (l *Locker) acquire(e *entry) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	began := time.Now()
	held, current, err := l.Store.Acquire(ctx, e.key, e.token, l.Lease, Holder{Task: e.job.ID, Manager: l.Manager, Since: began.UTC()})
	q := e.queue.Settings()

	l.mu.Lock()
	now := time.Now()
	l.note(err, now)
	e.phase = waiting
	switch {
	case err != nil:
	case !held:
		e.touched = false
	case now.Before(began.Add(believed(l.Lease))):
		e.held, e.since = true, began
		e.fence, e.renewAt = began.Add(believed(l.Lease)), began.Add(l.beat)
		l.wake(e.renewAt)
	default:
		held, err = false, errLate
	}
	if l.entries[e.job] != e || e.cancelled || l.stopping || e.queue.left {
		known := l.entries[e.job] == e
		l.forget(e)
		l.mu.Unlock()
		if known {
			l.endEarly(e)
		}
		return
	}
	l.decide(e, held, current, err, q) // unlocks
}

// endEarly ends a job that was cancelled while its lock was taken, or that the stop gives back.
func (l *Locker) endEarly(e *entry) {
	if e.cancelled {
		l.Ender.End(e.job, cancelledOutcome())
		return
	}
	l.Ender.End(e.job, job.Outcome{End: job.Returned, Ended: time.Now()})
}

// pass hands a job on to the pool. The caller holds mu; pass unlocks it. What is asked of the job until the pool has it is
// done afterwards.
func (l *Locker) pass(e *entry) {
	e.phase = passing
	e.queue.pending--
	l.unfollow(e)
	l.stepIn(e)
	l.mu.Unlock()
	e.queue.Next.Offer(e.job)
	l.mu.Lock()
	e.phase = passed
	cancelled, lost := e.cancelled, e.lost
	l.mu.Unlock()
	if cancelled {
		e.queue.Next.Cancel(e.job)
	}
	if lost {
		e.queue.Next.Interrupt(e.job, killGrace(l.Lease))
	}
}
