package pool

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// dispatch gives waiting jobs to processes, the oldest first. A suspect waits for a process without jobs, and one process is kept
// free of new jobs for it; meanwhile the others may pass it. The caller holds mu.
func (p *Pool) dispatch() {
	if len(p.buffer) == 0 || p.stopping {
		return
	}
	q, _ := p.Settings()
	var kept []*job.Job // suspects that have to wait
	var reserved *member
	next, now := 0, time.Now()
	for ; next < len(p.buffer); next++ {
		j := p.buffer[next]
		if !p.pace.may(q.Rate, now) {
			break
		}
		switch {
		case j.Suspect && p.send(j, q, p.empty):
		case j.Suspect:
			kept = append(kept, j)
			reserved = p.emptiest()
		case !p.send(j, q, func() *member { return p.busiestFree(reserved) }):
			p.keep(kept, next)
			return
		}
	}
	p.keep(kept, next)
}

// keep leaves in the buffer what was kept of the first n jobs, and all behind them.
func (p *Pool) keep(kept []*job.Job, n int) {
	clear(p.buffer[:n-len(kept)])
	copy(p.buffer[n-len(kept):n], kept)
	p.buffer = p.buffer[n-len(kept):]
	if len(p.buffer) == 0 {
		p.buffer = nil
	}
}

// send gives a job to the process that choose names, and to the next that it names when that one has just ended. It reports
// false when there is none.
func (p *Pool) send(j *job.Job, q settings.Queue, choose func() *member) bool {
	for {
		m := choose()
		if m == nil {
			return false
		}
		if !m.process.Send(j, job.Limits{TaskTimeout: q.TaskTimeout, KillGrace: q.KillGrace}) {
			m.deaf = true
			continue
		}
		p.pace.took()
		m.running[j] = time.Now()
		m.suspect = j.Suspect
		m.tasks++ // now and not at its end, or a process with several slots would get too many
		if reason := p.retire(m, q); reason != "" {
			m.leave(reason)
		}
		return true
	}
}

// busiestFree returns the process with the most jobs that still has a free slot, so that messages are shared and idle
// processes can go; nil when there is none.
func (p *Pool) busiestFree(reserved *member) *member {
	var best *member
	for _, m := range p.members {
		n := len(m.running)
		if m == reserved || m.suspect || n >= m.process.Slots() || best != nil && n <= len(best.running) || !m.ready() {
			continue
		}
		best = m
	}
	return best
}

// empty returns a process without jobs; nil when there is none.
func (p *Pool) empty() *member {
	for _, m := range p.members {
		if len(m.running) == 0 && m.ready() {
			return m
		}
	}
	return nil
}

// emptiest returns the process that will soonest be without jobs, as far as that can be told; nil when there is none. It gets
// no more, so it stays the emptiest.
func (p *Pool) emptiest() *member {
	var best *member
	for _, m := range p.members {
		if m.ready() && (best == nil || len(m.running) < len(best.running)) {
			best = m
		}
	}
	return best
}
