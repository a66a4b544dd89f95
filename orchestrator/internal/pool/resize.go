package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// resize starts and stops processes and returns how long until it must look again. The caller holds mu.
func (p *Pool) resize(ctx context.Context, now time.Time) time.Duration {
	q, _ := p.Settings()
	l := p.measure(q, now)
	wants, why := p.wants(Decide(l), q)
	grant, wait := p.ask(&l, wants, now)
	d := Decide(l)
	if d.Start < grant.Start {
		d.Start, d.Reason = grant.Start, why
	}
	p.shrink(d.Stop, job.ExitScaleDown)
	p.start(ctx, d.Start)
	p.record(Decided{At: now, Load: l, Decision: d})
	if n := p.shrink(grant.Leave, job.ExitBudget); n > 0 {
		p.record(Decided{At: now, Load: l, Decision: Decision{Stop: n, Reason: grant.Why}})
	}
	if d.Again > 0 {
		wait = min(wait, d.Again)
	}
	return wait
}

// wants is how many processes are to be started if that is possible, and why when it is more than was decided: one is tried while
// none can be started, whether or not anything waits; and who was replaced has a successor. The caller holds mu.
func (p *Pool) wants(d Decision, q settings.Queue) (n int, why string) {
	switch room := len(p.members)+p.starting < q.MaxWorkers; {
	case !room:
		return d.Start, ""
	case p.paused() && p.starting == 0:
		return max(1, d.Start), p.circuit.trouble() + ", and one is tried from time to time"
	case p.roll.owed && p.starting == 0:
		return max(1, d.Start), "one was let go to be replaced"
	default:
		return d.Start, ""
	}
}

// ask asks the circuit and the budget for starts, takes down in the load what they leave, and returns what may be started, and how
// long until to ask again. The caller holds mu.
func (p *Pool) ask(l *Load, wants int, now time.Time) (budget.Grant, time.Duration) {
	try, tryWhy, wait := p.trial(now)
	if wants == 0 {
		wait = time.Hour
	}
	manager := p.seat.Ask(p.need(min(wants, try), l.Min))
	switch {
	case manager.Start < min(wants, try):
		l.Room = Room{Limited: true, Processes: manager.Start, Why: manager.Why}
	case try < wants:
		l.Room = Room{Limited: true, Processes: manager.Start, Why: tryWhy}
	}
	if manager.Again > 0 {
		wait = min(wait, manager.Again)
	}
	p.short, p.room = manager.Why, l.Room
	return manager, wait
}

// need is what the budget is told. The caller holds mu.
func (p *Pool) need(wants, least int) budget.Need {
	q, _ := p.Settings()
	n := budget.Need{User: q.Priority != settings.PrioritySystem, Wants: wants, Min: least}
	for _, m := range p.members {
		switch {
		case !m.ready():
			n.Leaving++
		case len(m.running) == 0:
			n.Idle++
		default:
			n.Busy++
		}
	}
	return n
}

// trial is how many starts may be tried now after what became of earlier ones, why no more, and how long until there may be.
// The caller holds mu.
func (p *Pool) trial(now time.Time) (n int, why string, wait time.Duration) {
	pause := p.circuit.next.Sub(now)
	switch {
	case p.circuit.failures == 0 && pause <= 0:
		return budget.NoLimit, "", time.Hour
	case pause > 0:
		return 0, fmt.Sprintf("%s, and the next is tried in %s", p.circuit.trouble(), pause.Round(time.Millisecond)), pause
	case p.starting > 0 || slices.ContainsFunc(p.members, (*member).failing):
		return 0, p.circuit.trouble() + ", and one is tried before there are more", time.Hour
	default:
		return 1, p.circuit.trouble() + ", and one is tried before there are more", time.Hour
	}
}

// measure returns the load. The caller holds mu.
func (p *Pool) measure(q settings.Queue, now time.Time) Load {
	starting := p.starting
	if p.roll.starting {
		starting-- // it takes another's place
	}
	l := Load{
		Starting: starting, Capacity: starting * q.Slots, Min: q.MinWorkers, Max: q.MaxWorkers, Slots: q.Slots,
		MeanRun: p.load.run, StartCost: p.load.start,
	}
	for _, m := range p.members {
		if !m.ready() {
			l.Leaving++
			continue
		}
		l.Ready++
		l.Capacity += m.process.Slots()
		if m.suspect {
			l.Running += m.process.Slots()
		} else {
			l.Running += len(m.running)
		}
	}
	l.Waiting = len(p.buffer)
	for _, j := range p.buffer[:min(l.Waiting, q.MaxWorkers*q.Slots)] { // more would not change the decision
		if j.Suspect {
			l.Waiting += q.Slots - 1
		}
	}
	if l.Waiting > 0 {
		l.Stalled = now.Sub(p.stalled)
	}
	return l
}

// shrink lets n processes go, those with the fewest jobs first, of these the outdated, and of these the newest. It returns how many
// it found. The caller holds mu.
func (p *Pool) shrink(n int, why job.ExitReason) int {
	if n == 0 {
		return 0
	}
	var staying []*member
	for _, m := range slices.Backward(p.members) {
		if m.ready() {
			staying = append(staying, m)
		}
	}
	slices.SortStableFunc(staying, func(a, b *member) int {
		if c := cmp.Compare(len(a.running), len(b.running)); c != 0 {
			return c
		}
		return -cmp.Compare(a.outdated, b.outdated)
	})
	n = min(n, len(staying))
	for _, m := range staying[:n] {
		m.leave(why)
	}
	return n
}
