package pool

import (
	"context"
	"log/slog"
	"sync"
	"time"

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
	RSS() int64
	// Send gives it a job without blocking; false when it has ended.
	Send(j *job.Job, limits job.Limits) bool
	// Cancel and Interrupt ask a job's run to end, for the client or for a stop.
	Cancel(j *job.Job)
	Interrupt(j *job.Job)
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
	WorkerEnded(queue string, exit job.Exit)
}

// Deps are what a pool needs.
type Deps struct {
	Queue    string
	Launcher Launcher
	Ender    Ender
	Settings func() (settings.Queue, settings.Manager) // as they are now; must not block
	Abort    <-chan struct{}                           // closed when a stop must not wait for running jobs
	Log      *slog.Logger
}

// Pool is one queue's processes and waiting jobs.
type Pool struct {
	Deps
	kick chan struct{} // has an element when the number of processes may have to change

	mu       sync.Mutex
	buffer   []*job.Job
	members  []*member // in the order of their numbers
	early    map[uint64]bool
	starting int
	stopping bool
	circuit  circuit
	load     averages
	decision Decision
	starts   sync.WaitGroup
}

// member is a process and what the pool knows of it.
type member struct {
	process   Process
	running   map[*job.Job]struct{}
	tasks     uint64
	idleSince time.Time
}

// New returns a pool that has no processes yet.
func New(d Deps) *Pool {
	return &Pool{Deps: d, kick: make(chan struct{}, 1), early: map[uint64]bool{}}
}

// Capacity is how many jobs the queue may have in this manager at once; 0 while it may take none.
func (p *Pool) Capacity() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping || p.circuit.open() {
		return 0
	}
	q, _ := p.Settings()
	return q.Capacity()
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
	if p.stopping || p.circuit.open() {
		p.mu.Unlock()
		p.Ender.End(j, job.Outcome{End: job.Returned, Ended: time.Now()})
		return
	}
	p.buffer = append(p.buffer, j)
	p.dispatch()
	short := len(p.buffer) > 0
	p.mu.Unlock()
	if short {
		p.Kick()
	}
}

// dispatch gives waiting jobs to processes. The caller holds mu.
func (p *Pool) dispatch() {
	if len(p.buffer) == 0 {
		return
	}
	q, _ := p.Settings()
	limits := job.Limits{TaskTimeout: q.TaskTimeout, KillGrace: q.KillGrace}
	taken := 0
	for _, j := range p.buffer {
		m := p.busiestFree(q.Slots)
		if m == nil {
			break
		}
		if !m.process.Send(j, limits) {
			// It has ended and Exited is about to say so.
			p.remove(m.process.ID())
			p.early[m.process.ID()] = true
			break
		}
		m.running[j] = struct{}{}
		taken++
	}
	clear(p.buffer[:taken])
	p.buffer = p.buffer[taken:]
	if len(p.buffer) == 0 {
		p.buffer = nil
	}
}

// busiestFree returns the process with the most jobs that still has a free slot, so that messages are shared and idle
// processes can go; nil when there is none.
func (p *Pool) busiestFree(slots int) *member {
	var best *member
	for _, m := range p.members {
		n := len(m.running)
		if n >= slots || best != nil && n <= len(best.running) || m.process.Leaving() {
			continue
		}
		best = m
	}
	return best
}

// Cancel ends a job on request: at once while it waits, by asking its process while it runs.
func (p *Pool) Cancel(j *job.Job) {
	p.mu.Lock()
	for i, waiting := range p.buffer {
		if waiting == j {
			p.buffer = append(p.buffer[:i:i], p.buffer[i+1:]...)
			p.mu.Unlock()
			p.Ender.End(j, job.Outcome{End: job.Cancelled, Fault: fault.New(fault.Cancelled, "cancelled before it began"), Ended: time.Now()})
			return
		}
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
	for i, m := range p.members {
		if m.process.ID() == id {
			p.members = append(p.members[:i:i], p.members[i+1:]...)
			return m
		}
	}
	return nil
}
