package intake_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// A task that was taken away and comes back to the same manager waits until its earlier run has ended: it never runs twice
// at once here. The end of the earlier run changes nothing for the later one.
func TestSameTaskNeverRunsTwiceAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := newBench(b.client)
		key := submit(t, b.client, 1)[0]
		first := lane.Take(1)[0]
		steal(t, b.client, key)
		second := lane.Take(1)[0]
		if got := lane.pool.taken(); len(got) != 1 {
			t.Fatalf("%d jobs were handed down, want the first", len(got))
		}
		lane.Settling(func() {
			go lane.AttendOnly(second)
			go lane.AttendOnly(first)
			judge{}.End(first, job.Outcome{End: job.Succeeded, Ended: time.Now()})
			until(t, "the second is handed down", func() bool { return len(lane.pool.taken()) == 2 })
			ledger(t, b.client, 1)
			judge{}.End(second, job.Outcome{End: job.Succeeded, Ended: time.Now()})
			until(t, "both are let go", func() bool { return lane.Held() == 0 })
		})
		compareRecord(t, b.client, key, task.Completed)
		ledger(t, b.client, 0)
		if n := info(t, b.client).ProcessedTotal; n != 1 {
			t.Errorf("%d runs are counted, want 1", n)
		}
	})
}

// A cancel that comes between the moment a task is taken and the moment its job is handed down is not lost.
func TestEarlyCancelIsNotLost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := newBench(b.client)
		key := submit(t, b.client, 1)[0]
		first := lane.Take(1)[0]
		steal(t, b.client, key)
		second := lane.Take(1)[0] // waits for the first
		lane.Cancel(key)
		lane.Settling(func() {
			judge{}.End(first, job.Outcome{End: job.Succeeded, Ended: time.Now()})
			go lane.AttendOnly(first)
			lane.AttendOnly(second)
		})
		compareRecord(t, b.client, key, task.Cancelled)
		ledger(t, b.client, 0)
	})
}

// The counts are those of Redis, for all queues in one call, and the queues are announced to clients with their schemas.
func TestCountsAndEntries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		m := startWith(t, b.client, 1, 1, untilTold, intake.Lane{
			Kind: func() string { return kind }, Check: func([]byte) error { return nil },
			Entry: func() task.Entry { return task.Entry{Queue: queue, Kind: kind, Schema: `{}`, RetentionSeconds: 60} },
		})
		submit(t, b.client, 5)
		names := task.KeysOf(queue)
		check(t, b.client.ZAdd(t.Context(), names.Scheduled(), redis.Z{Score: 1e12, Member: "later"}).Err())
		check(t, b.client.ZAdd(t.Context(), names.Archived(), redis.Z{Score: 1, Member: "dead"}, redis.Z{Score: 2, Member: "too"}).Err())
		want := intake.Counts{Waiting: 3, Active: 2, Scheduled: 1, Dead: 2}
		until(t, "2 are active", func() bool {
			return must[map[string]intake.Counts](t)(m.in.Counts(t.Context()))[queue] == want
		})
		var entry task.Entry
		until(t, "the queue is announced", func() bool {
			data, err := b.client.Get(t.Context(), names.Entry()).Bytes()
			if err != nil {
				return false
			}
			entry = must[task.Entry](t)(task.DecodeEntry(data))
			return true
		})
		if entry.Kind != kind || entry.Schema != `{}` || entry.RetentionSeconds != 60 || !b.client.SIsMember(t.Context(), task.AsynqQueuesKey, queue).Val() {
			t.Errorf("the entry is %+v", entry)
		}
		until(t, "2 are in hand", func() bool { return m.in.InHand() == 2 }) // active in Redis is not yet answered
		if m.in.Health().LastGood().IsZero() || m.in.Health().Err() != nil {
			t.Errorf("Redis is said to be unwell: %v", m.in.Health().Err())
		}
	})
}
