package pool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// A job that loses its lock ends as returned while it waits, and as interrupted while it runs: by itself, or by the death of its
// process within the grace that was given, which costs what else was in that process no more than an interruption.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	const grace = time.Second
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MaxWorkers, q.Slots, q.KillGrace = 1, 3, time.Minute })).run()
		jobs := r.offer(5)
		pass(time.Second)
		r.Interrupt(jobs[3], grace)
		synctest.Wait()
		if o := r.outcome(jobs[3]); o.End != job.Returned || !o.Started.IsZero() {
			t.Errorf("one that waits: %+v", o)
		}
		r.Interrupt(jobs[0], grace)
		synctest.Wait()
		if o := r.outcome(jobs[0]); o.End != job.Interrupted {
			t.Errorf("one that heeds: %+v", o)
		}
		process := r.live()[0]
		process.mu.Lock()
		process.obeys = false
		process.mu.Unlock()
		r.Interrupt(jobs[1], grace)
		pass(grace - time.Millisecond)
		if len(r.live()) != 1 {
			t.Error("the process was killed before the grace was over")
		}
		pass(2 * time.Millisecond)
		for _, j := range []*job.Job{jobs[1], jobs[2], jobs[4]} {
			if o := r.outcome(j); o.End != job.Interrupted || o.Suspect || o.Exit == nil || o.Exit.Reason != job.ExitLockLost {
				t.Errorf("one in the process that was killed: %+v", o)
			}
		}
		r.Interrupt(jobs[1], grace) // it has ended
		r.Interrupt(newJob(), grace)
		r.finished()
	})
}
