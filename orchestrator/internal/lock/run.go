package lock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

const (
	// renewBatch is how many locks are renewed by one call: what is believed is counted from before it.
	renewBatch = 256
	// renewAhead is the part of a beat by which a lock is renewed earlier, together with others.
	renewAhead = 4
	// renewPause is how long until a renewal that failed is tried again.
	renewPause = 300 * time.Millisecond
	// lookPause is the least time between two looks at everything: what is due meanwhile is done together.
	lookPause = 10 * time.Millisecond
	// idleLook is when Run looks again while nothing is held.
	idleLook = time.Hour
)

// Why a lock is lost.
var (
	errLate  = errors.New("the store did not answer in time")
	errTaken = errors.New("it is gone from the store: it was evicted or its time ran out, or the store was restarted")
)

// Run renews locks and wakes what waits until ctx ends. Then it gives back what waits, and returns once all jobs that were
// handed on have ended and their locks are released. It returns no error.
func (l *Locker) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	end := ctx.Done()
	for {
		select {
		case <-end:
			end = nil
			l.stop()
		case <-l.kick:
		case <-timer.C:
		}
		if l.idle() {
			return nil
		}
		due, late := l.lookAround(time.Now())
		for _, e := range late {
			l.doubt(e)
		}
		l.startRenewal(due)
		timer.Reset(max(lookPause, l.schedule()))
	}
}

// stop gives back what waits.
func (l *Locker) stop() {
	l.mu.Lock()
	l.stopping = true
	l.giveBack(func(*entry) bool { return true }) // unlocks
}

// giveBack gives back what waits of those that are meant, the newest first, so that the oldest ends at the head of its queue. The
// caller holds mu; giveBack unlocks it.
func (l *Locker) giveBack(meant func(*entry) bool) {
	var back []*entry
	for _, e := range l.entries {
		if (e.phase == queued || e.phase == waiting || e.phase == settling) && meant(e) {
			back = append(back, e)
		}
	}
	slices.SortFunc(back, func(a, b *entry) int { return cmp.Compare(b.number, a.number) })
	for _, e := range back {
		l.forget(e)
	}
	l.mu.Unlock()
	for _, e := range back {
		l.Ender.End(e.job, job.Outcome{End: job.Returned, Ended: time.Now()})
	}
}

// idle reports whether the stop is complete.
func (l *Locker) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopping && !l.renewing && len(l.entries)+len(l.releases)+l.takers+l.follows == 0
}

// lookAround wakes what is due and returns the locks to be renewed, and those that may not be believed in any more.
func (l *Locker) lookAround(now time.Time) (due, late []*entry) {
	l.mu.Lock()
	var settled, overdue []*entry
	pressing := false // else one that failed and is to be tried a little later would be tried at once
	for _, e := range l.entries {
		if e.held && !e.loose && !now.Before(e.fence) {
			late = append(late, e)
			continue
		}
		if e.held && !l.renewing && e.renewAt.Before(now.Add(l.beat/renewAhead)) {
			due = append(due, e)
			pressing = pressing || !e.renewAt.After(now)
		}
		if e.phase != waiting && e.phase != settling || e.due.After(now) {
			continue
		}
		switch {
		case !e.job.Deadline.IsZero() && !now.Before(e.job.Deadline):
			overdue = append(overdue, e)
		case e.phase == settling:
			settled = append(settled, e)
		default:
			l.enqueue(e)
		}
	}
	if !pressing {
		due = nil
	}
	for _, e := range overdue {
		l.forget(e)
	}
	l.mu.Unlock()
	for _, e := range overdue {
		l.Ender.End(e.job, expired(e.job))
	}
	for _, e := range settled {
		l.mu.Lock()
		if l.entries[e.job] != e || e.phase != settling {
			l.mu.Unlock()
			continue
		}
		l.pass(e)
	}
	return due, late
}

// schedule returns how long until something is due, and remembers it.
func (l *Locker) schedule() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.wakeAt = now.Add(idleLook)
	earlier := func(at time.Time) {
		if at.Before(l.wakeAt) {
			l.wakeAt = at
		}
	}
	for _, e := range l.entries {
		if e.held && !e.loose {
			earlier(e.fence)
		}
		if e.held && !l.renewing {
			earlier(e.renewAt)
		}
		if e.phase == waiting || e.phase == settling {
			earlier(e.due)
		}
	}
	return max(0, l.wakeAt.Sub(now))
}

// startRenewal renews locks in the one goroutine that does so. Run does not wait for it: it must see fences pass while the
// store is slow.
func (l *Locker) startRenewal(due []*entry) {
	if len(due) == 0 {
		return
	}
	l.mu.Lock()
	l.renewing = true
	l.mu.Unlock()
	go func() {
		for batch := range slices.Chunk(due, renewBatch) {
			l.renew(batch)
		}
		l.mu.Lock()
		l.renewing = false
		l.poke()
		l.mu.Unlock()
	}()
}

// renew renews a batch of locks.
func (l *Locker) renew(batch []*entry) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	leases := make([]Lease, len(batch))
	for i, e := range batch {
		leases[i] = Lease{Key: e.key, Token: e.token}
	}
	began := time.Now()
	results := l.Store.Renew(ctx, leases, l.Lease)
	now := time.Now()
	for i, e := range batch {
		r := results[i]
		l.mu.Lock()
		l.note(r.Err, now)
		switch {
		case !e.held || r.Err == nil && !r.Still:
		case r.Err != nil:
			e.renewAt = now.Add(renewPause)
		default:
			e.loose = false
			e.fence, e.renewAt = began.Add(believed(l.Lease)), began.Add(l.beat)
		}
		l.mu.Unlock()
		if r.Err == nil && !r.Still {
			l.lose(e, errTaken)
		}
	}
}

// doubt is for a lock that could not be renewed in time. It is lost, unless its queue's tasks run without one while the store is
// away: then the run goes on, and the lock is renewed when the store answers.
func (l *Locker) doubt(e *entry) {
	if e.queue.Settings().LockMissing == settings.LockMissingRun {
		l.mu.Lock()
		begun := e.phase == passing || e.phase == passed
		e.loose = begun
		l.mu.Unlock()
		if begun {
			return
		}
	}
	l.lose(e, errLate)
}

// lose stops believing in a lock and interrupts its job. The lock is not released: if it is still there, it keeps others away
// while the run ends.
func (l *Locker) lose(e *entry, why error) {
	l.mu.Lock()
	if !e.held || l.entries[e.job] != e {
		l.mu.Unlock()
		return
	}
	e.held = false
	if e.phase != passing && e.phase != passed { // it has not begun: it tries again
		e.phase, e.due = waiting, time.Now()
		l.mu.Unlock()
		l.poke()
		return
	}
	e.lost = e.phase == passing
	e.touched = false
	l.forget(e)
	interrupt := !e.lost
	l.mu.Unlock()
	l.Log.Warn("a lock is lost; its task is interrupted", "lock", e.key, "task", e.job.ID, "why", why)
	if interrupt {
		e.queue.Next.Interrupt(e.job, killGrace(l.Lease))
	}
}
