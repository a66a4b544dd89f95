package pool_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/task"
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

// rig is a pool with fakes on both sides.
type rig struct {
	*pool.Pool
	t     testing.TB
	abort chan struct{}
	stop  context.CancelFunc
	ended chan struct{}
	tends sync.WaitGroup // goroutines of processes
	took  time.Duration  // of a start
	fails atomic.Bool    // starts fail
	dies  atomic.Bool    // processes end as soon as they are ready
	makes func(*fakeProcess)

	mu        sync.Mutex
	queue     settings.Queue
	manager   settings.Manager
	processes []*fakeProcess
	launches  int
	outcomes  map[*job.Job][]job.Outcome
	order     []*job.Job // in which they ended
	exits     []job.Exit
}

var (
	_ pool.Launcher = (*rig)(nil)
	_ pool.Ender    = (*rig)(nil)
)

var errNoStart = errors.New("the program is broken: install it again")

// newRig returns a pool that does not run yet.
func newRig(t testing.TB, q settings.Queue) *rig {
	t.Helper()
	r := &rig{
		t: t, abort: make(chan struct{}), ended: make(chan struct{}), queue: q, outcomes: map[*job.Job][]job.Outcome{},
		manager: settings.Manager{DrainTimeout: 10 * time.Second, StartTimeout: time.Second}, makes: func(*fakeProcess) {},
	}
	r.Pool = pool.New(pool.Deps{
		Queue: "q", Launcher: r, Ender: r, Abort: r.abort, Log: slog.New(slog.DiscardHandler),
		Settings: func() (settings.Queue, settings.Manager) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.queue, r.manager
		},
	})
	return r
}

// run runs the pool.
func (r *rig) run() *rig {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() {
		defer close(r.ended)
		if err := r.Run(ctx); err != nil {
			r.t.Errorf("Run returned %v", err)
		}
	}()
	return r
}

// finished stops the pool and waits until it has ended; no process may be left.
func (r *rig) finished() {
	r.t.Helper()
	r.stop()
	<-r.ended
	for _, p := range r.all() {
		if p.mu.Lock(); !p.closed {
			r.t.Errorf("process %d is left", p.id)
		}
		p.mu.Unlock()
	}
	r.tends.Wait()
	if s := r.Stats(); s.Held+s.Running+len(s.Workers)+s.Starting > 0 {
		r.t.Errorf("left behind: %+v", s)
	}
}

// set changes the settings of the queue, live.
func (r *rig) set(change func(*settings.Queue)) {
	r.mu.Lock()
	change(&r.queue)
	r.mu.Unlock()
	r.Kick()
}

func (r *rig) Launch(ctx context.Context, reports *pool.Pool) (pool.Process, error) {
	r.mu.Lock()
	r.launches++
	id, slots := r.launches, r.queue.Slots
	r.mu.Unlock()
	if r.took > 0 {
		timer := time.NewTimer(r.took)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("start: %w", context.Cause(ctx))
		}
	}
	if r.fails.Load() {
		return nil, errNoStart
	}
	p := &fakeProcess{
		id: uint64(id), pid: 1000 + id, slots: slots, since: time.Now(), reports: reports, obeys: true, asked: map[*job.Job]bool{}, //nolint:gosec // small
		events: make(chan func(), 1<<16),
	}
	r.makes(p)
	r.mu.Lock()
	r.processes = append(r.processes, p)
	slices.SortFunc(r.processes, func(a, b *fakeProcess) int { return cmp.Compare(a.id, b.id) })
	r.mu.Unlock()
	r.tends.Go(func() {
		for event := range p.events {
			event()
		}
	})
	if r.dies.Load() {
		p.end(job.ExitCrash)
	}
	return p, nil
}

func (r *rig) End(j *job.Job, o job.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes[j] = append(r.outcomes[j], o)
	r.order = append(r.order, j)
}

func (r *rig) Progress(*job.Job, task.Progress) {}

func (r *rig) WorkerEnded(_ string, exit job.Exit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exits = append(r.exits, exit)
}

// all are the processes that were ever started; live are those that have not ended.
func (r *rig) all() []*fakeProcess {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.processes)
}

func (r *rig) live() []*fakeProcess {
	return slices.DeleteFunc(r.all(), func(p *fakeProcess) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.closed
	})
}

// outcome is the one outcome of a job.
func (r *rig) outcome(j *job.Job) job.Outcome {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.outcomes[j]); n != 1 {
		r.t.Fatalf("job %s has %d outcomes", j.ID, n)
	}
	return r.outcomes[j][0]
}

// endings are the jobs in the order in which they ended.
func (r *rig) endings() []*job.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

func (r *rig) launched() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.launches
}

// offer offers n new jobs.
func (r *rig) offer(n int) []*job.Job {
	jobs := make([]*job.Job, n)
	for i := range jobs {
		jobs[i] = newJob()
		r.Offer(jobs[i])
	}
	return jobs
}

// numbers numbers the jobs of all tests.
var numbers atomic.Uint64

func newJob() *job.Job {
	return job.New(task.ID{Queue: "q", Key: strconv.FormatUint(numbers.Add(1), 10)}, "k", nil)
}

func suspect() *job.Job {
	j := newJob()
	j.Suspect = true
	return j
}

// queue is what most tests begin with.
func queue(change func(*settings.Queue)) settings.Queue {
	q := settings.Queue{MaxWorkers: 4, Slots: 1, Buffer: 16, WorkerIdle: time.Minute, KillGrace: time.Second}
	if change != nil {
		change(&q)
	}
	return q
}

// pass lets time pass in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
