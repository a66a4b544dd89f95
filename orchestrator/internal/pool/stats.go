package pool

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// Stats is how a pool is doing.
type Stats struct {
	Held, Running int // jobs
	Workers       []WorkerStats
	Starting      int
	CircuitOpen   bool   // no process can be started and none is left: the queue is paused
	Reason        string // why the last start failed; empty when the last one did well
	Decision      Decision
	Refused       string // why the last replacement of the processes was given up; empty when it was not
	// Exits are the ends of processes by reason, starts that failed included, since the manager's start.
	Exits map[job.ExitReason]uint64
}

// WorkerStats is how one process is doing.
type WorkerStats struct {
	ID      uint64
	PID     int
	Since   time.Time
	Tasks   uint64 // jobs that it was sent
	Slots   int
	Running int
	Leaving bool
	Why     job.ExitReason // why it leaves; empty while it stays, and for one that goes by itself
	Jobs    []task.ID      // that run in it, the longest running first
	RSS     int64          // bytes
}

// Stats returns how the pool is doing now.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Held: len(p.buffer), Starting: p.starting, CircuitOpen: p.paused(), Reason: p.circuit.reason, Decision: p.decision, Refused: p.roll.refused, Exits: maps.Clone(p.exits)}
	for _, m := range p.members {
		s.Running += len(m.running)
		s.Workers = append(s.Workers, WorkerStats{
			ID: m.process.ID(), PID: m.process.PID(), Since: m.process.Since(), Tasks: m.tasks, Slots: m.process.Slots(),
			Running: len(m.running), Leaving: !m.ready(), Why: m.why, Jobs: m.jobs(), RSS: m.process.RSS(),
		})
	}
	return s
}

// jobs are the tasks in the process, the longest running first. The caller holds mu.
func (m *member) jobs() []task.ID {
	running := slices.SortedFunc(maps.Keys(m.running), func(a, b *job.Job) int { return m.running[a].Compare(m.running[b]) })
	ids := make([]task.ID, len(running))
	for i, j := range running {
		ids[i] = j.ID
	}
	return ids
}
