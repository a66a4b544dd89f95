package pool

import (
	"slices"
	"time"
)

// keptDecisions is how many decisions that changed something are remembered.
const keptDecisions = 32

// Decided is a decision with what it was made from.
type Decided struct {
	At time.Time
	Load
	Decision
}

// Explanation says why a queue has the processes that it has.
type Explanation struct {
	Now    Decided
	Before []Decided // those that changed something, the latest first
	Limits []string  // what keeps the queue from doing more now, the most important first; see Limits
}

// record takes note of a decision. The caller holds mu.
func (p *Pool) record(d Decided) {
	p.decision = d.Decision
	if d.Start+d.Stop == 0 {
		return
	}
	p.Log.Debug("workers", "queue", p.Queue, "start", d.Start, "stop", d.Stop, "why", d.Reason, "ready", d.Ready, "starting", d.Starting,
		"leaving", d.Leaving, "waiting", d.Waiting, "running", d.Running, "capacity", d.Capacity, "min", d.Min, "max", d.Max, "slots", d.Slots,
		"mean_run", d.MeanRun, "start_cost", d.StartCost, "stalled", d.Stalled)
	if len(p.before) == keptDecisions {
		p.before = append(p.before[:0], p.before[1:]...)
	}
	p.before = append(p.before, d)
}

// Explain says why there are as many processes as there are, what was decided lately, and what is in the way of more.
func (p *Pool) Explain() Explanation {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	q, _ := p.Settings()
	l := p.measure(q, now)
	l.Room = p.room
	e := Explanation{Now: Decided{At: now, Load: l, Decision: Decide(l)}, Before: slices.Clone(p.before)}
	slices.Reverse(e.Before)
	facts := Facts{
		Load: l, Decision: e.Now.Decision, Held: len(p.buffer), Most: q.Capacity(), Stopping: p.stopping, Budget: p.short, Refused: p.roll.refused,
		Rate: q.Rate, NextTask: p.pace.wait(now, len(p.buffer)),
		Paused: p.paused(), Failures: p.circuit.failures, Trouble: p.circuit.trouble(), Failure: p.circuit.reason, NextStart: max(0, p.circuit.next.Sub(now)),
	}
	for _, m := range p.members {
		facts.Jobs += len(m.running)
	}
	for _, j := range p.buffer {
		if j.Suspect {
			facts.Suspects++
		}
	}
	e.Limits = Limits(facts)
	return e
}
