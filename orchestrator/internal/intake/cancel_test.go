package intake_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// A task is cancelled while it runs and while it waits in the buffer, by Drover's channel and by asynq's: it is gone, with
// a record that says so.
func TestCancel(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		keys := submit(t, b.client, 4)
		m := start(t, b.client, 2, 2, untilTold)
		until(t, "2 run and 2 are buffered", func() bool {
			running, buffered := m.pool.load()
			return running == 2 && buffered == 2
		})
		until(t, "the lane listens", func() bool {
			return b.client.Publish(t.Context(), task.KeysOf(queue).CancelChannel(), keys[0]).Val() > 0
		})
		check(t, b.client.Publish(t.Context(), task.KeysOf(queue).CancelChannel(), keys[2]).Err())
		inspector := asynq.NewInspectorFromRedisClient(b.client)
		for _, key := range []string{keys[1], keys[3]} {
			until(t, "asynq's cancel has ended "+key, func() bool {
				check(t, inspector.CancelProcessing(key))
				return b.client.Exists(t.Context(), task.KeysOf(queue).Task(key)).Val() == 0
			})
		}
		until(t, "all are settled", func() bool { return m.in.InHand() == 0 })
		for _, key := range keys {
			compareRecord(t, b.client, key, task.Cancelled)
		}
		if i := info(t, b.client); i.Size != 0 {
			t.Errorf("asynq says %+v", i)
		}
		ledger(t, b.client, 0)
	})
}

// Whatever becomes of tasks, in whatever order, each ends once and the room returns to the whole capacity: kills that come
// back to the head at once, failures due at once, cancels at any moment, tasks stolen while they run.
func TestRoomReturns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		const tasks = 120
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's choices
		choose := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(n)
		}
		m := start(t, b.client, 4, 4, func(r *run) job.Outcome {
			if r.Attempt() > 4 {
				return atOnce(r)
			}
			switch choose(6) {
			case 0:
				return job.Outcome{End: job.Killed, Fault: fault.New(fault.Crash, "x")}
			case 1:
				return failed(fault.New(fault.Failed, "no"))
			case 2:
				return failed(fault.New(fault.Failed, "never").AsPermanent())
			case 3:
				steal(t, b.client, r.ID.Key)
				return atOnce(r)
			case 4:
				select {
				case <-r.cancelled:
					return job.Outcome{End: job.Cancelled}
				case <-r.interrupted:
					return job.Outcome{End: job.Interrupted}
				case <-time.After(10 * time.Millisecond):
				}
			}
			return atOnce(r)
		})
		keys := submit(t, b.client, tasks)
		until(t, "all have ended", func() bool {
			check(t, b.client.Publish(t.Context(), task.KeysOf(queue).CancelChannel(), keys[choose(tasks)]).Err())
			i := info(t, b.client)
			return i.Pending+i.Active+i.Retry == 0 && m.in.InHand() == 0
		})
		for _, key := range keys {
			if b.client.Exists(t.Context(), task.KeysOf(queue).Record(key)).Val() != 1 {
				t.Errorf("task %s has no record of its end", key)
			}
		}
		m.pool.mu.Lock()
		m.pool.run = untilTold
		m.pool.mu.Unlock()
		submitOne(t, b.client, "again0", `{}`)
		for i := range 20 {
			submitOne(t, b.client, "again"+string(rune('a'+i)), `{}`)
		}
		until(t, "all room is used", func() bool {
			running, buffered := m.pool.load()
			return running == 4 && buffered == 4
		})
		check(t, m.stop())
		ledger(t, b.client, 0)
	})
}
