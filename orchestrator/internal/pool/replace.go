package pool

import "github.com/drover-jobs/drover/orchestrator/internal/job"

// Replace lets every process whose start began before now go, one after the other, each after its jobs; new ones come with the
// load. It does not wait.
func (p *Pool) Replace() {
	p.mu.Lock()
	p.current++
	p.mu.Unlock()
	p.Kick()
}

// replaceNext lets the oldest process of an earlier generation go, unless one is on its way out, whose end kicks the pool.
// The caller holds mu.
func (p *Pool) replaceNext() {
	var next *member
	for _, m := range p.members {
		switch {
		case m.made == p.current:
		case !m.ready():
			return
		case next == nil:
			next = m
		}
	}
	if next != nil {
		next.leave(job.ExitReload)
	}
}
