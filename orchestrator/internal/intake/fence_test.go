package intake_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
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

// deaf is a Redis client that carries out some scripts and loses their answers.
type deaf struct {
	redis.UniversalClient
	lose atomic.Int64 // how many answers are still to be lost
}

func (d *deaf) Process(ctx context.Context, cmd redis.Cmder) error {
	err := d.UniversalClient.Process(ctx, cmd)
	if err == nil && d.lose.Load() > 0 {
		d.lose.Add(-1)
		err = context.DeadlineExceeded
		cmd.SetErr(err)
	}
	return err
}

// A dequeue whose answer is lost loses no task: the next call brings what it took, in the old order, before anything new.
func TestLostAnswerLosesNoTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		keys := submit(t, b.client, 10)
		check(t, newBench(b.client).warm(t)) // Redis knows the scripts
		d := &deaf{UniversalClient: b.client}
		d.lose.Store(2)
		lane := newBench(d)
		if got := lane.Take(4); len(got) != 0 {
			t.Fatalf("a lost answer brought %d tasks", len(got))
		}
		if got := lane.Take(0); len(got) != 0 {
			t.Fatalf("a lost answer brought %d tasks", len(got))
		}
		if got := keysOf(lane.Take(2)); !slices.Equal(got, keys[:6]) {
			t.Errorf("it took %v, want %v", got, keys[:6])
		}
		ledger(t, b.client, 6)
		if got := keysOf(lane.Take(10)); !slices.Equal(got, keys[6:]) {
			t.Errorf("then %v, want %v", got, keys[6:])
		}
		if lane.Held() != 10 {
			t.Errorf("%d are held, want 10", lane.Held())
		}
	})
}

// A stop right after a dequeue whose answer was lost finds out what it took and gives it back.
func TestStopAfterLostAnswer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		keys := submit(t, b.client, 20)
		check(t, newBench(b.client).warm(t))
		d := &deaf{UniversalClient: b.client}
		d.lose.Store(1)
		m := start(t, d, 4, 4, untilTold)
		until(t, "the answer is lost", func() bool { return d.lose.Load() == 0 })
		check(t, m.stop())
		if got := waiting(t, b.client); !slices.Equal(got, keys) {
			t.Errorf("the queue is %v", got)
		}
		ledger(t, b.client, 0)
	})
}

func (b bench) warm(t *testing.T) error {
	t.Helper()
	b.Take(0)
	_, err := b.Settle(nil, nil)
	return err
}

func keysOf(jobs []*job.Job) []string {
	keys := make([]string, len(jobs))
	for i, j := range jobs {
		keys[i] = j.ID.Key
	}
	return keys
}

// Whatever the order and the batches in which tasks come back, and whoever takes some of them meanwhile, they stand at the
// head of the queue in the order in which they were first there, before those that were never taken.
func TestOrderOfThoseGivenBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		for seed := range uint64(30) {
			random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's choices
			check(t, b.client.FlushAll(t.Context()).Err())
			keys := submit(t, b.client, 30)
			lanes := []bench{newBench(b.client), newBench(b.client)}
			held := [][]*job.Job{nil, nil}
			for range 20 {
				i := random.IntN(2)
				if random.IntN(2) == 0 {
					held[i] = append(held[i], lanes[i].Take(random.IntN(8))...)
					continue
				}
				random.Shuffle(len(held[i]), func(a, b int) { held[i][a], held[i][b] = held[i][b], held[i][a] })
				n := random.IntN(len(held[i]) + 1)
				lanes[i].giveBack(t, held[i][:n])
				held[i] = held[i][n:]
			}
			lanes[0].giveBack(t, held[0])
			lanes[1].giveBack(t, held[1])
			if got := waiting(t, b.client); !slices.Equal(got, keys) {
				t.Fatalf("seed %d: the queue is\n%v\nwant\n%v", seed, got, keys)
			}
			ledger(t, b.client, 0)
		}
	})
}

// giveBack settles jobs as never begun, sorted as the settler sorts them, and lets go of them.
func (b bench) giveBack(t *testing.T, jobs []*job.Job) {
	t.Helper()
	if len(jobs) > 0 {
		b.GiveBack(t.Context(), jobs)
	}
}

// A renewal stops the run of a task that was taken away, and leaves the leases of those that were not where they should be.
func TestBeatStopsWhatWasTakenAway(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := newBench(b.client)
		keys := submit(t, b.client, 3)
		jobs := lane.Take(3)
		names := task.KeysOf(queue)
		steal(t, b.client, keys[1])
		for _, key := range []string{keys[0], keys[2]} {
			check(t, b.client.ZAdd(t.Context(), names.Lease(), redis.Z{Score: 1, Member: key}).Err())
		}
		lane.Beat()
		for _, key := range []string{keys[0], keys[2]} {
			left := time.Until(time.Unix(int64(b.client.ZScore(t.Context(), names.Lease(), key).Val()), 0))
			if left < 25*time.Second || left > 31*time.Second {
				t.Errorf("the lease of %s ends in %s, want 30 s", key, left)
			}
		}
		if b.client.ZScore(t.Context(), names.Lease(), keys[1]).Err() != redis.Nil { //nolint:errorlint // redis.Nil is never wrapped by the client
			t.Error("a task that waits has got a lease")
		}
		cancelled := 0
		for i, j := range jobs {
			select {
			case v := <-j.Verdict():
				if cancelled++; i != 1 || v.State != task.Cancelled {
					t.Errorf("the run of task %d was ended with %+v", i, v)
				}
			default:
			}
		}
		if cancelled != 1 {
			t.Errorf("%d runs were stopped, want 1", cancelled)
		}
	})
}

// A run whose lease ran out, because Redis was away for too long, is stopped and its task given back, once Redis is there
// and nobody else has taken it. It has not been cancelled: nobody wanted it to end. One whose lease is good goes on.
func TestExpiredLeaseIsNoCancel(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		d := &deaf{UniversalClient: b.client}
		lane := newBench(d)
		key := submit(t, b.client, 1)[0]
		jobs := lane.Take(1)
		d.lose.Store(1)
		lane.Beat()
		if n := len(jobs[0].Verdict()); n != 0 {
			t.Error("a lost beat stopped a run at once")
		}
		d.lose.Store(1)
		lane.Expire()
		lane.Beat()
		lane.Attend(jobs[0])
		if got := waiting(t, b.client); !slices.Equal(got, []string{key}) || lane.Held() != 0 {
			t.Errorf("the queue is %v and %d are held", got, lane.Held())
		}
		if n := b.client.HGet(t.Context(), task.KeysOf(queue).Task(key), task.FieldInterruptions).Val(); n != "1" {
			t.Errorf("it has %s interruptions, want 1", n)
		}
		ledger(t, b.client, 0)
	})
}

// A suspect stays one over a stop before its run, and is none after the run, however that ended.
func TestSuspectIsRemembered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := newBench(b.client)
		key := submit(t, b.client, 1)[0]
		take := func() *job.Job {
			t.Helper()
			jobs := lane.Take(1)
			if len(jobs) != 1 {
				t.Fatalf("took %d tasks", len(jobs))
			}
			return jobs[0]
		}
		lane.end(t, job.Outcome{End: job.Killed, Suspect: true, Fault: fault.New(fault.Crash, "x")}, take())
		j := take()
		if !j.Suspect {
			t.Error("a suspect was taken as none")
		}
		lane.end(t, job.Outcome{End: job.Returned}, j)
		if j = take(); !j.Suspect {
			t.Error("a suspect that never began is none any more")
		}
		lane.end(t, job.Outcome{End: job.Killed, Fault: fault.New(fault.Crash, "x")}, j)
		if j = take(); j.Suspect || j.Counters.Kills != 1 {
			t.Errorf("after its run it is a suspect: %v, with %+v", j.Suspect, j.Counters)
		}
		lane.end(t, failed(fault.New(fault.Failed, "no").AsPermanent()), j)
		if b.client.HExists(t.Context(), task.KeysOf(queue).Task(key), task.FieldSuspect).Val() {
			t.Error("a dead task is a suspect")
		}
	})
}

// A task that asynq ends before its handler was called, as it does when it is cancelled at that very moment, does not
// stay in the hand.
func TestRunThatAsynqNeverBeganIsAttended(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenvSocket())
	lane := newBench(b.client)
	key := submit(t, b.client, 1)[0]
	jobs := lane.Take(1)
	lane.Settling(func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // as asynq's processor calls
		defer cancel()
		names := task.KeysOf(queue)
		answer, err := lane.Gateway().EvalSha(ctx, "of asynq", []string{names.Task(key), names.Active(), names.Lease(), names.Retry()}).Text()
		if err != nil || answer != "OK" {
			t.Errorf("asynq was answered %q, %v", answer, err)
		}
		lane.pool.Cancel(jobs[0])
		until(t, "the task is let go", func() bool { return lane.Held() == 0 })
	})
	compareRecord(t, b.client, key, task.Cancelled)
}

// asynq's recoverer cannot take a task that this manager holds, and can take that of another.
func TestRecovererLeavesTheHeldAlone(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenvSocket())
	lane := newBench(b.client)
	keys := submit(t, b.client, 2)
	lane.Take(1)
	names := task.KeysOf(queue)
	script := redis.NewScript(`return redis.call("EXISTS", KEYS[1])`)
	for i, want := range []any{"OK", int64(1)} {
		got := must[any](t)(script.Run(t.Context(), lane.Gateway(), []string{names.Task(keys[i])}).Result())
		if got != want {
			t.Errorf("a script of the recoverer about task %d was answered %v, want %v", i, got, want)
		}
	}
}

var _ intake.Dispatcher = (*pool)(nil)
