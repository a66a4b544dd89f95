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

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/task"
)

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
	early atomic.Bool    // and their end is told before their start is
	makes func(*fakeProcess)
	// retried counts what Resume asked for.
	retried atomic.Int32
	// endTakes is how long End takes.
	endTakes time.Duration

	mu        sync.Mutex
	queue     settings.Queue
	manager   settings.Manager
	processes []*fakeProcess
	launches  int
	outcomes  map[*job.Job][]job.Outcome
	order     []*job.Job // in which they ended
	starts    []uint64
	exits     []job.Exit

	progressed int
}

var (
	_ pool.Launcher = (*rig)(nil)
	_ pool.Ender    = (*rig)(nil)
)

var errNoStart = errors.New("the program is broken: install it again")

// newRig returns a pool that does not run yet.
func newRig(t testing.TB, q settings.Queue) *rig {
	t.Helper()
	return newRigWithin(t, "q", q, nil)
}

// newRigWithin returns a pool of this name that shares a budget with others.
func newRigWithin(t testing.TB, name string, q settings.Queue, shared *budget.Budget) *rig {
	t.Helper()
	r := &rig{
		t: t, abort: make(chan struct{}), ended: make(chan struct{}), queue: q, outcomes: map[*job.Job][]job.Outcome{},
		manager: settings.Manager{DrainTimeout: 10 * time.Second, StartTimeout: time.Second}, makes: func(*fakeProcess) {},
	}
	r.Pool = pool.New(pool.Deps{
		Queue: name, Budget: shared, Launcher: r, Ender: r, Abort: r.abort, Retry: func() { r.retried.Add(1) }, Log: slog.New(slog.DiscardHandler),
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

// hurry lets the stop wait for no job.
func (r *rig) hurry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.manager.DrainTimeout = 0
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
	told := make(chan struct{})
	r.tends.Go(func() {
		defer close(told)
		for event := range p.events {
			event()
		}
	})
	if r.dies.Load() {
		p.end(job.ExitCrash)
		if r.early.Load() {
			<-told
		}
	}
	return p, nil
}

func (r *rig) End(j *job.Job, o job.Outcome) {
	if r.endTakes > 0 {
		pass(r.endTakes)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes[j] = append(r.outcomes[j], o)
	r.order = append(r.order, j)
}

func (r *rig) Progress(*job.Job, task.Progress) { r.progressed++ }

func (r *rig) WorkerStarted(_ string, worker uint64, _ int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.exits, func(e job.Exit) bool { return e.Worker == worker }) {
		r.t.Errorf("worker %d was told to have ended before it was told to have started", worker)
	}
	r.starts = append(r.starts, worker)
}

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
