package controller

import (
	"math"
	"slices"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// Times say how long the runs of a queue took lately, and how long their tasks waited before: from when they could have been
// taken until a worker had them. All are 0 when nothing has run.
type Times struct {
	Runs             int // how many these are from
	RunP50, RunP99   time.Duration
	WaitP50, WaitP99 time.Duration
}

const (
	timedRuns = 1024        // the most runs of a queue that are remembered
	leastRuns = 20          // so many count however old they are: a queue of rare tasks has times, too
	timedFor  = time.Minute // beyond these only what ended within this time counts: what was changed shows soon
)

// timed is one run.
type timed struct {
	ended     int64 // Unix nanoseconds
	run, wait time.Duration
}

// timer remembers the runs of a queue that ended last.
type timer struct {
	ring [timedRuns]timed
	next int // where the next one is put
	n    int // how many there are
}

func (t *timer) add(r timed) {
	t.ring[t.next] = r
	t.next = (t.next + 1) % timedRuns
	t.n = min(t.n+1, timedRuns)
}

// latest copies the runs, the latest first.
func (t *timer) latest() []timed {
	runs := make([]timed, t.n)
	for i := range runs {
		runs[i] = t.ring[(t.next-1-i+timedRuns)%timedRuns]
	}
	return runs
}

// timedOf is the time of an end; false where nothing ran, or where the run was broken off for reasons outside of it.
func timedOf(j *job.Job, o job.Outcome) (timed, bool) {
	switch o.End {
	case job.Succeeded, job.Faulted, job.Killed:
	default:
		return timed{}, false
	}
	if o.Started.IsZero() {
		return timed{}, false
	}
	return timed{ended: o.Ended.UnixNano(), run: max(0, o.Ended.Sub(o.Started)), wait: max(0, o.Started.Sub(j.Pending))}, true
}

// timesOf sums up runs, the latest first. It is a pure function.
func timesOf(latest []timed, now time.Time) Times {
	oldest := now.Add(-timedFor).UnixNano()
	n := min(leastRuns, len(latest))
	for n < len(latest) && latest[n].ended >= oldest {
		n++
	}
	runs, waits := make([]time.Duration, n), make([]time.Duration, n)
	for i, r := range latest[:n] {
		runs[i], waits[i] = r.run, r.wait
	}
	slices.Sort(runs)
	slices.Sort(waits)
	const half, most = 0.5, 0.99
	return Times{
		Runs: n, RunP50: quantile(runs, half), RunP99: quantile(runs, most),
		WaitP50: quantile(waits, half), WaitP99: quantile(waits, most),
	}
}

// quantile is the smallest of the sorted values that at least the part q of them, above 0 and up to 1, do not exceed (the nearest
// rank); 0 when there is none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	const slip = 1e-9 // 0.99*100 is a little more than 99
	rank := int(math.Ceil(q*float64(len(sorted)) - slip))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Times returns how long the latest runs of a queue took.
func (c *Controller) Times(queue string) Times {
	c.mu.Lock()
	t := c.timers[queue]
	if t == nil {
		c.mu.Unlock()
		return Times{}
	}
	latest := t.latest()
	c.mu.Unlock()
	return timesOf(latest, time.Now())
}
