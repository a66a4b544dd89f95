package pool

import (
	"math"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
)

// expect notes the deadline of a job that comes into the buffer. The caller holds mu.
func (p *Pool) expect(j *job.Job) {
	if d := j.Deadline; !d.IsZero() && (p.lapse.IsZero() || d.Before(p.lapse)) {
		p.lapse = d
	}
}

// takeLapsed takes the jobs out of the buffer whose client's deadline has passed, and returns how long until that is so for the next.
// The caller holds mu, and ends them.
func (p *Pool) takeLapsed(now time.Time) (lapsed []*job.Job, next time.Duration) {
	if p.lapse.IsZero() {
		return nil, math.MaxInt64
	}
	if now.Before(p.lapse) {
		return nil, p.lapse.Sub(now)
	}
	p.lapse = time.Time{}
	var kept []*job.Job
	for _, j := range p.buffer {
		if !j.Deadline.IsZero() && !now.Before(j.Deadline) {
			lapsed = append(lapsed, j)
			continue
		}
		kept = append(kept, j)
		p.expect(j)
	}
	p.buffer = kept
	if p.lapse.IsZero() {
		return lapsed, math.MaxInt64
	}
	return lapsed, p.lapse.Sub(now)
}

// expire ends jobs whose deadline passed while they waited.
func (p *Pool) expire(jobs []*job.Job) {
	for _, j := range jobs {
		f := fault.New(fault.Timeout, "its deadline, %s, passed while it waited for a worker", j.Deadline.UTC().Format(time.RFC3339))
		p.Ender.End(j, job.Outcome{End: job.Expired, Fault: f, Ended: time.Now()})
	}
}
