package pool_test

import (
	"slices"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
)

// fakeProcess does what a test wants it to. Like a real one it tells of outcomes and of its end from a goroutine of its own.
type fakeProcess struct {
	id       uint64
	slots    int
	since    time.Time
	reports  *pool.Pool
	events   chan func() // closed after the end
	obeys    bool        // heeds Cancel and Interrupt
	stubborn bool        // does not go when it is told to

	mu      sync.Mutex
	runs    []*job.Job
	sent    []*job.Job
	most    int // runs at once
	mixed   bool
	reason  job.ExitReason
	closed  bool
	asked   map[*job.Job]bool // to end, for a stop
	cancels int
	pid     int
}

var _ pool.Process = (*fakeProcess)(nil)

func (p *fakeProcess) ID() uint64       { return p.id }
func (p *fakeProcess) PID() int         { return p.pid }
func (p *fakeProcess) Since() time.Time { return p.since }
func (p *fakeProcess) Slots() int       { return p.slots }
func (p *fakeProcess) RSS() int64       { return 1 << 20 }

func (p *fakeProcess) Send(j *job.Job, _ job.Limits) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.runs, p.sent = append(p.runs, j), append(p.sent, j)
	p.most = max(p.most, len(p.runs))
	if len(p.runs) > 1 && slices.ContainsFunc(p.runs, func(r *job.Job) bool { return r.Suspect }) {
		p.mixed = true
	}
	return true
}

func (p *fakeProcess) Cancel(j *job.Job) {
	p.mu.Lock()
	p.cancels++
	obeys := p.obeys
	p.mu.Unlock()
	if obeys {
		p.finish(j, job.Cancelled)
	}
}

func (p *fakeProcess) Interrupt(j *job.Job) {
	p.mu.Lock()
	p.asked[j] = true
	obeys := p.obeys
	p.mu.Unlock()
	if obeys {
		p.finish(j, job.Interrupted)
	}
}

func (p *fakeProcess) InterruptWithin(j *job.Job, grace time.Duration) {
	p.Interrupt(j)
	time.AfterFunc(grace, func() {
		if slices.Contains(p.running(), j) {
			p.end(job.ExitLockLost)
		}
	})
}

func (p *fakeProcess) Drain(reason job.ExitReason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason == "" {
		p.reason = reason
		p.leaveLocked()
	}
}

func (p *fakeProcess) leaveLocked() {
	if p.reason != "" && len(p.runs) == 0 && !p.stubborn {
		p.endLocked(p.reason)
	}
}

func (p *fakeProcess) Kill(reason job.ExitReason) { p.end(reason) }

func (p *fakeProcess) Leaving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || p.reason != ""
}

// finish ends a run, if it is there.
func (p *fakeProcess) finish(j *job.Job, end job.End) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.runs, j)
	if i < 0 {
		return
	}
	p.runs = slices.Delete(p.runs, i, i+1)
	now := time.Now()
	p.events <- func() {
		p.reports.Finished(p.id, j, job.Outcome{End: end, Started: now.Add(-time.Millisecond), Ended: now, Worker: p.id})
	}
	p.leaveLocked()
}

// end ends the process for a reason.
func (p *fakeProcess) end(reason job.ExitReason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked(reason)
}

func (p *fakeProcess) endLocked(reason job.ExitReason) {
	if p.closed {
		return
	}
	p.closed = true
	var unfinished []job.Unfinished
	for _, j := range p.runs {
		unfinished = append(unfinished, job.Unfinished{Job: j, Started: time.Now()})
	}
	p.runs = nil
	age := time.Since(p.since)
	p.events <- func() {
		p.reports.Exited(job.Exit{Reason: reason, Worker: p.id, PID: p.pid, Age: age, Tail: []string{"last words"}}, unfinished)
	}
	close(p.events)
}

// running are the runs.
func (p *fakeProcess) running() []*job.Job {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.runs)
}

func (p *fakeProcess) wasSent() []*job.Job {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}
