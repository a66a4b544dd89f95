package orchestrator

import (
	"sync/atomic"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
)

// gate stands between the intake and what a queue's jobs are handed to, and keeps the intake from taking more while the queue
// is paused in this manager. What has been taken goes on. It needs no Redis.
type gate struct {
	intake.Dispatcher
	closed atomic.Bool
}

var _ intake.Dispatcher = (*gate)(nil)

// Capacity is none while the gate is closed.
func (g *gate) Capacity() int {
	if g.closed.Load() {
		return 0
	}
	return g.Dispatcher.Capacity()
}
