package pool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// A job whose deadline passes while it waits ends as expired then, and not before; the others wait on.
func TestDeadlineWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.Slots, q.MaxWorkers = 1, 1 })).run()
		running := r.offer(1)[0]
		synctest.Wait()
		began := time.Now()
		waiting := make([]*job.Job, 4)
		for i := range waiting {
			waiting[i] = newJob()
			if i > 0 {
				waiting[i].Deadline = began.Add(time.Duration(4-i) * time.Minute)
			}
			r.Offer(waiting[i])
		}
		for minute := 1; minute <= 3; minute++ {
			at := began.Add(time.Duration(minute) * time.Minute)
			time.Sleep(time.Until(at) - time.Millisecond) //nolint:forbidigo // the clock of synctest
			synctest.Wait()
			if held := r.Stats().Held; held != 5-minute {
				t.Errorf("%d are held just before minute %d", held, minute)
			}
			time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the clock of synctest
			synctest.Wait()
			if o := r.outcome(waiting[4-minute]); o.End != job.Expired || o.Fault == nil || !o.Started.IsZero() {
				t.Errorf("after minute %d: %+v", minute, o)
			}
		}
		if held := r.Stats().Held; held != 1 {
			t.Errorf("%d are held in the end", held)
		}
		r.live()[0].finish(running, job.Succeeded)
		synctest.Wait()
		r.live()[0].finish(waiting[0], job.Succeeded)
		r.finished()
	})
}
