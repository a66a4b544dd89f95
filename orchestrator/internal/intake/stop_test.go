package intake_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// A stop with 200 tasks in the queue, 20 buffered and 4 running leaves nothing active and every task waiting with its
// counters unchanged but for the interruptions, those that were taken first in line and in their old order.
func TestStopPutsEverythingBackInOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		keys := submit(t, b.client, 224)
		m := start(t, b.client, 4, 20, untilTold)
		until(t, "4 run and 20 are buffered", func() bool {
			running, buffered := m.pool.load()
			return running == 4 && buffered == 20
		})
		check(t, m.stop())
		if got := waiting(t, b.client); !slices.Equal(got, keys) {
			t.Errorf("the queue is\n%v\nwant\n%v", got, keys)
		}
		ledger(t, b.client, 0)
		if i := info(t, b.client); i.Pending != 224 || i.Active != 0 || i.Retry != 0 || i.ProcessedTotal != 0 || i.FailedTotal != 0 {
			t.Errorf("asynq says %+v", i)
		}
		for i, key := range keys {
			fields := must[map[string]string](t)(b.client.HGetAll(t.Context(), task.KeysOf(queue).Task(key)).Result())
			if fields["state"] != "pending" || fields["pending_since"] == "" {
				t.Fatalf("task %s is %v", key, fields)
			}
			interruptions := "" // never taken
			switch {
			case i < 4:
				interruptions = "1"
			case i < 24:
				interruptions = "0"
			}
			if fields[task.FieldInterruptions] != interruptions || fields[task.FieldKills] > "0" || fields[task.FieldFailures] > "0" {
				t.Errorf("task %d has the counters %v", i, fields)
			}
		}
	})
}

// Tasks that are stopped and taken again are each run to their end once, by whichever manager, and in the end nothing is
// left of them.
func TestEachTaskRunsOnceAcrossRestarts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		const tasks = 150
		submit(t, b.client, tasks)
		var mu sync.Mutex
		done := map[string]int{}
		work := func(r *run) job.Outcome {
			select {
			case <-r.interrupted:
				return job.Outcome{End: job.Interrupted}
			default:
			}
			mu.Lock()
			defer mu.Unlock()
			done[r.ID.Key]++
			return atOnce(r)
		}
		finished := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(done)
		}
		for _, enough := range []int{30, 60, 90, 120, tasks} {
			m := start(t, b.client, 3, 8, work)
			until(t, fmt.Sprintf("%d tasks are done", enough), func() bool { return finished() >= enough })
			check(t, m.stop())
		}
		for key, n := range done {
			if n != 1 {
				t.Errorf("task %s ran %d times", key, n)
			}
		}
		if i := info(t, b.client); i.Size != 0 || i.ProcessedTotal != tasks || i.FailedTotal != 0 {
			t.Errorf("asynq says %+v", i)
		}
		ledger(t, b.client, 0)
	})
}
