package pool

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Process is a running worker process.
type Process interface {
	ID() uint64
	PID() int
	Since() time.Time
	Slots() int // jobs that it runs at once
	RSS() int64 // bytes of memory of the process and its descendants
	// Send gives it a job without blocking; false when it has ended.
	Send(j *job.Job, limits job.Limits) bool
	// Cancel and Interrupt ask a job's run to end, for the client or for a stop.
	Cancel(j *job.Job)
	Interrupt(j *job.Job)
	// InterruptWithin is Interrupt with a grace of its own until the process is killed.
	InterruptWithin(j *job.Job, grace time.Duration)
	// Drain lets it end after its jobs, Kill ends it now.
	Drain(reason job.ExitReason)
	Kill(reason job.ExitReason)
	// Leaving is true when it takes no more jobs.
	Leaving() bool
}

// Launcher starts a process of the queue's plugin and blocks until it is ready. The process reports to the pool.
type Launcher interface {
	Launch(ctx context.Context, reports *Pool) (Process, error)
}

// Ender takes what became of jobs and processes.
type Ender interface {
	End(j *job.Job, o job.Outcome)
	Progress(j *job.Job, p task.Progress)
	// WorkerStarted and WorkerEnded are called in this order for each process; a start that failed has an end only.
	WorkerStarted(queue string, worker uint64, pid int)
	WorkerEnded(queue string, exit job.Exit)
}

// Deps are what a pool needs.
type Deps struct {
	Queue    string
	Plugin   string         // the queue's; processes of one plugin are thought to need the same memory
	Budget   *budget.Budget // shared by all pools; nil is no limit
	Launcher Launcher
	Ender    Ender
	Settings func() (settings.Queue, settings.Manager) // as they are now; must not block
	Abort    <-chan struct{}                           // closed when a stop must not wait for running jobs
	Retry    func()                                    // called by Resume, for what else can be tried again; may be nil, must not block
	Log      *slog.Logger
}

// Pool is one queue's processes and waiting jobs.
type Pool struct {
	Deps
	kick chan struct{} // has an element when the number of processes may have to change

	mu       sync.Mutex
	buffer   []*job.Job
	lapse    time.Time           // when the next client's deadline in the buffer may pass; zero for none
	stalled  time.Time           // since when some job has waited without a break
	members  []*member           // in the order of their numbers
	early    map[uint64]job.Exit // processes that ended before their start was told
	exits    map[job.ExitReason]uint64
	starting int
	ending   int // processes that have ended and whose jobs are being ended
	stopping bool
	circuit  circuit
	victims  map[task.ID]struct{} // what was in the process that crashed last
	load     averages
	pace     pace
	current  int // generation of processes; older ones are to be replaced
	roll     rollout
	seat     *budget.Seat
	room     Room   // as it was when a start was last wanted
	short    string // why the budget gave no more then
	decision Decision
	before   []Decided // decisions that changed something, the latest last
	starts   sync.WaitGroup
}

// member is a process and what the pool knows of it.
type member struct {
	process   Process
	made      int                    // the generation when its start began
	outdated  job.ExitReason         // it is to be replaced; empty while it is not
	running   map[*job.Job]time.Time // since when
	suspect   bool                   // the job in it is a suspect and must stay alone
	deaf      bool                   // it refused a job: its end is about to be told
	tasks     uint64                 // jobs that were sent to it
	finished  bool                   // one of them has had an outcome
	idleSince time.Time
	why       job.ExitReason // it was told to go; empty while it was not
	rss       int64          // bytes of memory when that was last measured; 0 when it never was
	over      overrun        // the limit of memory that it is ended for
	kill      *time.Timer    // to its kill, in a stop
}

// leave lets the process go after its jobs.
func (m *member) leave(why job.ExitReason) {
	if m.why == "" {
		m.why = why
	}
	m.process.Drain(why)
}

// ready reports whether the process takes jobs.
func (m *member) ready() bool { return !m.deaf && !m.process.Leaving() }

// failing reports whether the process ends without having done anything.
func (m *member) failing() bool { return !m.finished && len(m.running) == 0 && !m.ready() }

// New returns a pool that has no processes yet.
func New(d Deps) *Pool {
	if d.Budget == nil {
		d.Budget = budget.New(func() budget.Limits { return budget.Limits{} })
	}
	p := &Pool{Deps: d, kick: make(chan struct{}, 1), early: map[uint64]job.Exit{}, exits: map[job.ExitReason]uint64{}}
	p.seat = d.Budget.Join(d.Queue, d.Plugin, p.Kick)
	return p
}

// Capacity is how many jobs the queue may have in this manager at once; 0 while it may take none.
func (p *Pool) Capacity() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping || p.paused() {
		return 0
	}
	q, _ := p.Settings()
	return q.Capacity()
}

// paused reports whether no job can be run: no process can be started, and none is left of earlier ones. The caller holds mu.
func (p *Pool) paused() bool {
	return p.circuit.open() && !slices.ContainsFunc(p.members, (*member).ready)
}

// Kick makes the pool look at its settings and load again.
func (p *Pool) Kick() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Offer takes a job. It never blocks; a job that cannot be run now is ended as returned.
func (p *Pool) Offer(j *job.Job) {
	p.mu.Lock()
	if p.stopping || p.paused() {
		p.mu.Unlock()
		p.giveBack([]*job.Job{j})
		return
	}
	if len(p.buffer) == 0 {
		p.stalled = time.Now()
	}
	p.buffer = append(p.buffer, j)
	p.expect(j)
	p.dispatch()
	short := len(p.buffer) > 0
	p.mu.Unlock()
	if short {
		p.Kick()
	}
}

// Cancel ends a job on request: at once while it waits, by asking its process while it runs.
func (p *Pool) Cancel(j *job.Job) {
	p.mu.Lock()
	if i := slices.Index(p.buffer, j); i >= 0 {
		p.buffer = slices.Delete(p.buffer, i, i+1)
		p.dispatch() // it may have been a suspect that kept a process empty
		p.mu.Unlock()
		p.Ender.End(j, job.Outcome{End: job.Cancelled, Fault: fault.New(fault.Cancelled, "cancelled before it began"), Ended: time.Now()})
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
		at.Cancel(j)
	}
}

func (p *Pool) member(id uint64) *member {
	for _, m := range p.members {
		if m.process.ID() == id {
			return m
		}
	}
	return nil
}

func (p *Pool) remove(id uint64) *member {
	m := p.member(id)
	if m != nil {
		p.members = slices.DeleteFunc(p.members, func(other *member) bool { return other == m })
	}
	return m
}
