package lock

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
)

// Queue stands between the intake and the pool of one queue.
type Queue struct {
	QueueDeps
	locker *Locker
	// The locker's mutex guards these.
	aside   int  // jobs that wait for a lock which another has
	pending int  // jobs that have not been handed on
	left    bool // it takes no more
}

// Queue returns the locks of one queue. A queue has one, but for one that is added again while it is still being left.
func (l *Locker) Queue(d QueueDeps) *Queue { return &Queue{QueueDeps: d, locker: l} }

// Capacity is how many jobs the queue may have in this manager at once: what the pool holds, and besides those that wait for
// locks of others, since they take no room there.
func (q *Queue) Capacity() int {
	n := q.Next.Capacity()
	if n <= 0 {
		return 0
	}
	q.locker.mu.Lock()
	defer q.locker.mu.Unlock()
	if q.locker.stopping || q.left {
		return 0
	}
	return n + q.aside
}

// Offer takes a job: hands it on at once when it has no lock key, and else when it has its lock. It does not block.
func (q *Queue) Offer(j *job.Job) {
	key, err := NewKey(j.Kind, q.Fields(), j.Payload)
	if err != nil {
		f := fault.New(fault.InvalidPayload, "%s", err.Error()).AsPermanent()
		q.locker.Ender.End(j, job.Outcome{End: job.Faulted, Fault: f, Ended: time.Now()})
		return
	}
	if key.IsZero() {
		q.Next.Offer(j)
		return
	}
	l := q.locker
	l.mu.Lock()
	if l.stopping || q.left {
		l.mu.Unlock()
		l.Ender.End(j, job.Outcome{End: job.Returned, Ended: time.Now()})
		return
	}
	l.number++
	q.pending++
	e := &entry{queue: q, job: j, key: key, token: NewToken(), number: l.number, since: time.Now()}
	l.entries[j] = e
	l.enqueue(e)
	l.mu.Unlock()
}

// Leave gives back the queue's jobs that wait for their locks, and from now on those that are offered. The locks of jobs that were
// handed on are renewed until these have ended.
func (q *Queue) Leave() {
	l := q.locker
	l.mu.Lock()
	q.left = true
	l.giveBack(func(e *entry) bool { return e.queue == q }) // unlocks
}

// Cancel ends a job on request: at once while it waits for its lock; later the pool does it.
func (q *Queue) Cancel(j *job.Job) {
	l := q.locker
	l.mu.Lock()
	e := l.entries[j]
	switch {
	case e == nil, e.phase == passed:
		l.mu.Unlock()
		q.Next.Cancel(j)
	case e.phase == taking, e.phase == passing:
		e.cancelled = true
		l.mu.Unlock()
	default:
		l.forget(e)
		l.mu.Unlock()
		l.Ender.End(j, cancelledOutcome())
	}
}

// Ended releases the lock of a job that has its verdict. Whoever wires the stages calls it after every end that the pool
// decides. It does nothing for a job without a lock.
func (l *Locker) Ended(j *job.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[j]; e != nil {
		l.forget(e)
	}
}

// Leave is Ended for a job of which something may still be at work for some seconds: its lock is not renewed any more, and not
// released either, so that it ends by itself.
func (l *Locker) Leave(j *job.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[j]; e != nil {
		e.touched = false
		l.forget(e)
	}
}

// Waiting is how many jobs of the queue wait for their lock.
func (q *Queue) Waiting() int {
	q.locker.mu.Lock()
	defer q.locker.mu.Unlock()
	return q.pending
}

// forget lets a job go: it waits for nothing any more, and the lock that it has or may have is released. The caller holds mu.
func (l *Locker) forget(e *entry) {
	if l.entries[e.job] == e && e.phase != passing && e.phase != passed {
		e.queue.pending--
	}
	delete(l.entries, e.job)
	l.unfollow(e)
	l.stepIn(e)
	if e.phase != taking { // else the taker sees to it, which knows what came of its call
		l.giveUp(e)
	}
	e.held = false
	if l.stopping {
		l.poke()
	}
}

// giveUp releases the lock that a job has or may have. The caller holds mu.
func (l *Locker) giveUp(e *entry) {
	if e.touched {
		e.touched = false
		l.releases = append(l.releases, Lease{Key: e.key, Token: e.token})
		l.employ()
	}
}

// stepAside counts a job among those that wait for another's lock. It reports false when there are enough. The caller holds mu.
func (l *Locker) stepAside(e *entry) bool {
	if e.aside {
		return true
	}
	if e.queue.aside >= maxAside {
		return false
	}
	e.aside = true
	e.queue.aside++
	l.aside++
	if e.queue.Room != nil {
		e.queue.Room()
	}
	return true
}

// stepIn ends stepAside. The caller holds mu.
func (l *Locker) stepIn(e *entry) {
	if e.aside {
		e.aside = false
		e.queue.aside--
		l.aside--
	}
}

func cancelledOutcome() job.Outcome {
	return job.Outcome{End: job.Cancelled, Fault: fault.New(fault.Cancelled, "cancelled before it began"), Ended: time.Now()}
}
