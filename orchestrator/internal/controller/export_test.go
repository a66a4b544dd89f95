package controller

import (
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// Judge is the pure judgement.
func Judge(j *job.Job, o job.Outcome, q settings.Queue, jitter float64) job.Verdict {
	return judge(j, o, q, jitter)
}

// Pending is how many jobs have progress that is not published.
func (c *Controller) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.latest)
}
