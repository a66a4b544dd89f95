package pool

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// rollout is a replacement of processes on its way. One new process is started first, beyond max_workers if need be; when it is
// ready, one old leaves after its jobs, and so on. Where the budget has no room for one more, one old leaves first. The first new
// process that does not start ends it, and the old ones stay.
type rollout struct {
	starting bool           // a process is being started to take the place of an old one
	owed     bool           // an old one was let go first, and its successor has not started yet
	reason   job.ExitReason // of the latest
	refused  string         // why the latest was given up; empty when it was not
}

// Replace replaces every process whose start began before now, one after the other, each after its jobs, new ones first. It does
// not wait, and returns how many there are.
func (p *Pool) Replace(why job.ExitReason) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current++
	p.roll.reason, p.roll.refused = why, ""
	n := p.starting
	for _, m := range p.members {
		if m.ready() {
			m.outdated = why
			n++
		}
	}
	p.Kick()
	return n
}

// Restart replaces one process after its jobs, a new one first.
func (p *Pool) Restart(worker uint64, why job.ExitReason) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.member(worker)
	if m == nil {
		return fmt.Errorf("restart worker %d: %w", worker, ErrNoWorker)
	}
	if m.ready() {
		m.outdated = why
	}
	p.Kick()
	return nil
}

// replaceNext takes the next step of a rollout, unless one is under way, whose end kicks the pool. It returns how long until it must
// look again. The caller holds mu.
func (p *Pool) replaceNext(ctx context.Context, now time.Time) time.Duration {
	next := p.oldest()
	if next == nil || p.roll.starting || p.roll.owed {
		return time.Hour
	}
	try, _, wait := p.trial(now)
	if try == 0 {
		return wait
	}
	q, _ := p.Settings()
	if len(p.members)+p.starting <= q.MaxWorkers && p.seat.Spare() {
		p.roll.starting = true
		p.launch(ctx, true)
		p.record(Decided{At: now, Load: p.measure(q, now), Decision: Decision{Start: 1, Reason: fmt.Sprintf("%s: worker %d is replaced, a new one first", next.outdated, next.process.ID())}})
		return time.Hour
	}
	p.roll.owed = true
	next.leave(next.outdated)
	p.record(Decided{At: now, Load: p.measure(q, now), Decision: Decision{Stop: 1, Reason: fmt.Sprintf("%s: worker %d is replaced, and has to go first, because there is no room for one more", next.outdated, next.process.ID())}})
	return time.Hour
}

// oldest is the oldest process that is to be replaced; nil when there is none, or one is on its way out. The caller holds mu.
func (p *Pool) oldest() *member {
	var oldest *member
	for _, m := range p.members {
		switch {
		case m.outdated == "":
		case !m.ready():
			return nil
		case oldest == nil:
			oldest = m
		}
	}
	return oldest
}

// succeeded takes a process of the rollout that is ready, and lets an old one go for it. The caller holds mu.
func (p *Pool) succeeded(first bool) {
	p.roll.owed = false
	if !first {
		return
	}
	if m := p.oldest(); m != nil {
		m.leave(m.outdated)
	}
}

// giveUpRollout lets the old processes stay, because a new one of theirs did not start. The caller holds mu.
func (p *Pool) giveUpRollout(reason string) {
	old := 0
	for _, m := range p.members {
		if m.outdated != "" && m.ready() {
			old++
		}
		m.outdated = ""
	}
	if old == 0 && !p.roll.owed && !p.roll.starting {
		return
	}
	p.roll.owed, p.roll.refused = false, reason
	p.Log.Error("the workers are not replaced, because a new one did not start; the old ones stay", "queue", p.Queue, "old", old, "error", reason)
}
