package pool

import (
	"errors"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// ErrNoWorker says that the queue has no such process, or not any more.
var ErrNoWorker = errors.New("there is no such worker: it has ended, or never was")

// Kill ends a process now, for an operator, and returns its number and the tasks that were in it. They go back, and it costs them
// nothing but an interruption.
func (p *Pool) Kill(worker uint64) (ids []task.ID, pid int, err error) {
	p.mu.Lock()
	m := p.member(worker)
	if m == nil {
		p.mu.Unlock()
		return nil, 0, fmt.Errorf("kill worker %d: %w", worker, ErrNoWorker)
	}
	ids, pid = m.jobs(), m.process.PID()
	m.why, m.deaf = job.ExitOperator, true // what is dispatched from now on goes elsewhere
	p.mu.Unlock()
	m.process.Kill(job.ExitOperator)
	p.Kick()
	return ids, pid, nil
}

// Resume tries at once to start what could not be started, instead of after the pause.
func (p *Pool) Resume() {
	p.mu.Lock()
	p.circuit.next = time.Time{}
	p.mu.Unlock()
	if p.Retry != nil {
		p.Retry()
	}
	p.Kick()
}

// Process returns a process by its number, for those who want to know more of it than the pool does.
func (p *Pool) Process(worker uint64) (Process, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.member(worker); m != nil {
		return m.process, true
	}
	return nil, false
}
