package intake

import (
	"sync/atomic"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// Totals are how many tasks were settled since the start, in all queues.
type Totals struct {
	Ended    uint64 // their ends were stored
	Returned uint64 // they were put back into their queues, at once or for a later try
}

// totals counts what has been written to Redis, not what was only decided.
type totals struct{ ended, returned atomic.Uint64 }

func (t *totals) add(v job.Verdict) {
	switch {
	case v.State.Ended():
		t.ended.Add(1)
	case v.Move == job.GiveBack || v.Move == job.Defer || v.Move == job.Retry:
		t.returned.Add(1)
	}
}

// Totals returns the totals.
func (in *Intake) Totals() Totals {
	return Totals{Ended: in.totals.ended.Load(), Returned: in.totals.returned.Load()}
}
