package intake_test

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// content is everything in Redis, as DUMP gives it for keys that both brokers can dump: here the hashes and lists as text.
func content(t *testing.T, c redis.UniversalClient) map[string]any {
	t.Helper()
	ctx, all := t.Context(), map[string]any{}
	for _, key := range must[[]string](t)(c.Keys(ctx, "*{"+queue+"}*").Result()) {
		switch c.Type(ctx, key).Val() {
		case "hash":
			all[key] = c.HGetAll(ctx, key).Val()
		case "list":
			all[key] = c.LRange(ctx, key, 0, -1).Val()
		case "zset":
			all[key] = c.ZRangeWithScores(ctx, key, 0, -1).Val()
		case "string":
			all[key] = c.Get(ctx, key).Val()
		}
	}
	return all
}

// steal takes a task away from its holder as asynq's recoverer does: into retry and, being due, back into the queue.
func steal(t *testing.T, c redis.UniversalClient, key string) {
	t.Helper()
	ctx, names := t.Context(), task.KeysOf(queue)
	_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.LRem(ctx, names.Active(), 0, key)
		p.ZRem(ctx, names.Lease(), key)
		p.LPush(ctx, names.Pending(), key)
		p.HSet(ctx, names.Task(key), "state", "pending")
		return nil
	})
	check(t, err)
}

// outcomes are one of each way in which a run ends.
func outcomes() []job.Outcome {
	return []job.Outcome{
		{End: job.Succeeded, Result: []byte(`1`)}, {End: job.Cancelled}, {End: job.Returned}, {End: job.Interrupted},
		{End: job.Killed, Fault: fault.New(fault.Crash, "x")}, failed(fault.New(fault.Failed, "no")), failed(fault.New(fault.Failed, "no").AsPermanent()),
	}
}

// A settle that comes after the task was taken away, whether it waits, is held by another manager or by the same one
// again, changes nothing in Redis and publishes nothing.
func TestLateSettleChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		for name, then := range map[string]func(other, same bench){
			"it waits":                     func(_, _ bench) {},
			"another manager has it":       func(other, _ bench) { other.Take(1) },
			"the same manager has it anew": func(_, same bench) { same.Take(1) },
		} {
			for _, o := range outcomes() {
				check(t, b.client.FlushAll(t.Context()).Err())
				first, second := newBench(b.client), newBench(b.client)
				key := submit(t, b.client, 1)[0]
				jobs := first.Take(1)
				steal(t, b.client, key)
				then(second, first)
				before := content(t, b.client)
				events := b.client.Subscribe(t.Context(), task.KeysOf(queue).EventsChannel())
				must[any](t)(events.Receive(t.Context()))
				if moved := first.end(t, o, jobs...); !slices.Equal(moved, []int64{0}) {
					t.Errorf("%s, end %v: moved %v", name, o.End, moved)
				}
				if after := content(t, b.client); !equal(before, after) {
					t.Errorf("%s, end %v: it was\n%v\nand is\n%v", name, o.End, before, after)
				}
				check(t, b.client.Publish(t.Context(), task.KeysOf(queue).EventsChannel(), "last").Err())
				if m := must[*redis.Message](t)(events.ReceiveMessage(t.Context())); m.Payload != "last" {
					t.Errorf("%s, end %v: %q was published", name, o.End, m.Payload)
				}
				_ = events.Close()
			}
		}
	})
}

// A settle that is repeated because its answer was lost changes nothing the second time.
func TestRepeatedSettleChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		for _, o := range outcomes() {
			check(t, b.client.FlushAll(t.Context()).Err())
			lane := newBench(b.client)
			submit(t, b.client, 1)
			jobs := lane.Take(1)
			if moved := lane.end(t, o, jobs...); !slices.Equal(moved, []int64{1}) {
				t.Errorf("end %v: moved %v at first", o.End, moved)
			}
			before := content(t, b.client)
			if moved := lane.end(t, o, jobs...); !slices.Equal(moved, []int64{0}) {
				t.Errorf("end %v: moved %v the second time", o.End, moved)
			}
			if after := content(t, b.client); !equal(before, after) {
				t.Errorf("end %v: it was\n%v\nand is\n%v", o.End, before, after)
			}
		}
	})
}

// The events of a batch are published as one message that a subscriber can decode.
func TestEventsAreDecodable(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := newBench(b.client)
		keys := submit(t, b.client, 40)
		jobs := lane.Take(40)
		events := b.client.Subscribe(t.Context(), task.KeysOf(queue).EventsChannel())
		defer func() { _ = events.Close() }()
		must[any](t)(events.Receive(t.Context()))
		lane.end(t, job.Outcome{End: job.Succeeded}, jobs...)
		got := must[[]*task.Event](t)(task.DecodeEvents([]byte(must[*redis.Message](t)(events.ReceiveMessage(t.Context())).Payload)))
		if len(got) != 40 {
			t.Fatalf("%d events, want 40", len(got))
		}
		for i, e := range got {
			if e.ID.Key != keys[i] || e.State != task.Completed || e.Attempts != 1 || e.At.IsZero() {
				t.Errorf("event %d is %+v", i, e)
			}
		}
	})
}
