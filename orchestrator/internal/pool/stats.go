package pool

import "time"

// Stats is how a pool is doing.
type Stats struct {
	Held, Running int // jobs
	Workers       []WorkerStats
	Starting      int
	CircuitOpen   bool   // no process can be started and none is left: the queue is paused
	Reason        string // why the last start failed; empty when the last one did well
	Decision      Decision
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
	RSS     int64 // bytes
}

// Stats returns how the pool is doing now.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Held: len(p.buffer), Starting: p.starting, CircuitOpen: p.paused(), Reason: p.circuit.reason, Decision: p.decision}
	for _, m := range p.members {
		s.Running += len(m.running)
		s.Workers = append(s.Workers, WorkerStats{
			ID: m.process.ID(), PID: m.process.PID(), Since: m.process.Since(), Tasks: m.tasks, Slots: m.process.Slots(),
			Running: len(m.running), Leaving: !m.ready(), RSS: m.process.RSS(),
		})
	}
	return s
}
