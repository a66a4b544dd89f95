package judge

import (
	"cmp"
	"slices"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/ledger"
)

// exclusive looks at the times between which each run is known to have gone on: from its begin to its end or, when it was killed,
// to its last sign of life, which it gives every 20 ms.
//
// A lock is a lease. Its holder stops believing in it before it can be another's, and has a quarter of the lease to end its run
// then. A process that is stopped meanwhile cannot do so: neither a manager that does not run, nor a worker that does not. So an
// overlap is allowed when, at any time of the earlier run, its process or its manager was frozen. Nothing else is: neither a
// memcached that was killed or frozen, nor Redis, nor a manager that was killed, whose workers die with it.
func exclusive(c *Case, f *Finding) {
	byLock := map[string][]ledger.Run{}
	for _, run := range c.Runs {
		if run.Lock != "" {
			byLock[run.Lock] = append(byLock[run.Lock], run)
		}
	}
	for lock, runs := range byLock {
		slices.SortFunc(runs, func(a, b ledger.Run) int { return cmp.Compare(a.Begin, b.Begin) })
		var before ledger.Run // the one that went on the longest so far
		for i, run := range runs {
			f.Checked++
			if i > 0 && run.Begin < before.Last {
				if c.frozen(before) {
					f.Allowed++
				} else {
					f.breach("%s: %s (pid %d, manager %d) began while %s (pid %d, manager %d) ran for another %d ms", lock,
						run.ID, run.PID, run.Manager, before.ID, before.PID, before.Manager, (before.Last-run.Begin)/1e6)
				}
			}
			if run.Last > before.Last {
				before = run
			}
		}
	}
}

// frozen reports whether the run's process or its manager was stopped while it went on.
func (c *Case) frozen(run ledger.Run) bool {
	for _, freeze := range c.freezes[run.Manager] {
		if freeze.From <= run.Last && freeze.To+near >= run.Begin {
			return true
		}
	}
	for _, injury := range c.injuries[run.PID] {
		if injury.To > injury.From && injury.From <= run.Last && injury.To+near >= run.Begin {
			return true
		}
	}
	return false
}
