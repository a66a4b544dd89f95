package pool

import (
	"slices"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// Interrupt ends a job that may not go on because it has lost its lock. One that waits for a process ends at once, as returned.
// The run of another is asked to end, and its process is killed when it has not within grace, whatever kill_grace says: the
// task, and whatever else was in that process, end as interrupted. A job that is not here has ended.
func (p *Pool) Interrupt(j *job.Job, grace time.Duration) {
	p.mu.Lock()
	if i := slices.Index(p.buffer, j); i >= 0 {
		p.buffer = slices.Delete(p.buffer, i, i+1)
		p.dispatch() // it may have been a suspect that kept a process empty
		p.mu.Unlock()
		p.giveBack([]*job.Job{j})
		return
	}
	var at Process
	for _, m := range p.members {
		if _, ok := m.running[j]; ok {
			at = m.process
		}
	}
	p.mu.Unlock()
	if at != nil {
		at.InterruptWithin(j, grace)
	}
}
