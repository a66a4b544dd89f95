package pool

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// stop gives back what waits, lets running jobs finish within drain_timeout, interrupts what is left, kills what does not
// listen, and returns when no process is left.
func (p *Pool) stop() {
	p.mu.Lock()
	p.stopping = true
	p.seat.Ask(budget.Need{})
	waiting := p.buffer
	p.buffer = nil
	_, manager := p.Settings()
	p.mu.Unlock()
	p.giveBack(waiting)

	deadline := time.NewTimer(manager.DrainTimeout)
	defer deadline.Stop()
	if p.drained(deadline.C, true) {
		return
	}
	p.interruptAll()
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	if p.drained(grace.C, false) {
		return
	}
	p.killAll()
	never := make(chan time.Time)
	p.drained(never, false)
}

// drained lets idle processes go and waits until none is left; false when end, or the abort if that is heeded, came first.
func (p *Pool) drained(end <-chan time.Time, heedAbort bool) bool {
	abort := p.Abort
	if !heedAbort {
		abort = nil
	}
	for {
		if p.drainIdle() == 0 {
			return true
		}
		select {
		case <-p.kick:
		case <-end:
			return false
		case <-abort:
			return false
		}
	}
}

// drainIdle lets processes without jobs go, kills those that do not within their grace, and returns how many processes
// there are, those being started and those whose jobs are being ended included.
func (p *Pool) drainIdle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if len(m.running) == 0 && m.kill == nil {
			m.leave(job.ExitStop)
			process := m.process
			m.kill = time.AfterFunc(stopGrace, func() { process.Kill(job.ExitStop) })
		}
	}
	return len(p.members) + p.starting + p.ending
}

func (p *Pool) interruptAll() {
	p.mu.Lock()
	type pair struct {
		process Process
		job     *job.Job
	}
	var running []pair
	for _, m := range p.members {
		for j := range m.running {
			running = append(running, pair{m.process, j})
		}
	}
	p.mu.Unlock()
	for _, r := range running {
		r.process.Interrupt(r.job)
	}
}

func (p *Pool) killAll() {
	p.mu.Lock()
	members := append([]*member(nil), p.members...)
	p.mu.Unlock()
	for _, m := range members {
		m.process.Kill(job.ExitStop)
	}
}
