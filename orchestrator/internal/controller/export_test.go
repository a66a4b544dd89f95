package controller

import (
	"time"

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

// Quantile is the pure function.
func Quantile(sorted []time.Duration, q float64) time.Duration { return quantile(sorted, q) }

// Timer remembers runs.
type Timer struct{ t timer }

// Add remembers a run that ended at a moment.
func (t *Timer) Add(ended time.Time, run, wait time.Duration) {
	t.t.add(timed{ended: ended.UnixNano(), run: run, wait: wait})
}

// Times sums them up.
func (t *Timer) Times(now time.Time) Times { return timesOf(t.t.latest(), now) }
