package intake

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// renewEvery is how often leases are renewed: asynq's own beat, by which other managers see that a task has an owner.
	renewEvery = 5 * time.Second
	// renewBatch is how many leases one script renews at most.
	renewBatch = 256
)

// leases renews the leases of all that a lane holds. asynq renews those of runs that it knows of. It does not know of tasks
// that it has not asked for, nor of those that wait to be settled, and it loses a run when one with the same ID ends.
type leases struct {
	lane *lane
	last atomic.Int64 // Unix nanosecond of the last beat that was answered
}

// expired reports whether a lease that was given at the given time has run out.
func (r *leases) expired(given time.Time) bool {
	if last := time.Unix(0, r.last.Load()); last.After(given) {
		given = last
	}
	return time.Since(given) >= leaseDuration
}

// run renews until stop is closed.
func (r *leases) run(stop <-chan struct{}) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			r.beat()
		}
	}
}

// beat renews each lease once, and stops the runs of tasks that were taken away: their ends would not be stored. When Redis
// has been away for so long that leases have run out, it stops those runs too: by now another manager may have taken their
// tasks. Nobody wanted those to end: they are given back once Redis is there, if they are still ours.
func (r *leases) beat() {
	now := time.Now()
	all := r.lane.hand.all()
	held := all
	defer func() {
		for _, t := range held {
			if r.expired(t.received) {
				r.lane.hand.expire(t)
				r.lane.Dispatcher.Cancel(t.job)
			}
		}
	}()
	for len(all) > 0 {
		batch := all[:min(len(all), renewBatch)]
		all = all[len(batch):]
		if !r.renew(batch, now) {
			return
		}
	}
	r.last.Store(now.UnixNano())
}

// renew renews a batch and reports whether Redis answered.
func (r *leases) renew(batch []*held, now time.Time) bool {
	l := r.lane
	args := make([]any, 0, 2+2*len(batch))
	args = append(args, now.Add(leaseDuration).Unix(), l.keys.TaskPrefix())
	for _, t := range batch {
		args = append(args, t.key, t.holder)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	results, err := l.scripts.renew.run(ctx, l.Redis, []string{l.keys.Lease()}, args).Int64Slice()
	l.health.took(l.Queue, now, err)
	if err != nil {
		return false
	}
	for i, t := range batch {
		if i < len(results) && results[i] == 1 {
			continue
		}
		// It may just have been settled; then its job has ended and there is nothing to cancel.
		l.Dispatcher.Cancel(t.job)
	}
	return true
}
