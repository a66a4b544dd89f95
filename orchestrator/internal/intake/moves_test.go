package intake_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// bench is a lane without asynq: each of its steps is a call.
type bench struct {
	intake.Bench
	pool *pool
	log  *journal
}

func newBench(c redis.UniversalClient) bench {
	log := &journal{}
	p := newPool(judge{}, 0, 1000, nil) // nothing runs by itself
	return bench{log: log, pool: p, Bench: intake.NewBench(intake.Deps{Redis: c, Ender: judge{}, Log: log.logger()}, intake.Lane{
		Queue: queue, Dispatcher: p, Kind: func() string { return kind }, Check: func([]byte) error { return nil },
	})}
}

// end settles jobs in one call as the controller would decide, and returns which moved.
func (b bench) end(t *testing.T, o job.Outcome, jobs ...*job.Job) []int64 {
	t.Helper()
	if o.Ended.IsZero() {
		o.Ended = time.Now()
	}
	verdicts := make([]job.Verdict, len(jobs))
	for i, j := range jobs {
		verdicts[i] = verdictOf(j, o)
	}
	return must[[]int64](t)(b.Settle(jobs, verdicts))
}

func failed(f *fault.Fault) job.Outcome { return job.Outcome{End: job.Faulted, Fault: f} }

// After each move asynq's inspector sees the task where it belongs, with its counters and the counts of the day.
func TestMoves(t *testing.T) {
	t.Parallel()
	type want struct {
		state             asynq.TaskState // 0: the task is gone
		counters          [4]string       // failures, kills, interruptions, losses
		processed, failed int
		end               string
		record            task.State // 0: none
	}
	hour := time.Hour
	for name, move := range map[string]struct {
		outcome job.Outcome
		want    want
	}{
		"finish":  {job.Outcome{End: job.Succeeded, Result: []byte(`1`)}, want{processed: 1, record: task.Completed}},
		"cancel":  {job.Outcome{End: job.Cancelled}, want{processed: 1, record: task.Cancelled}},
		"retry":   {failed(fault.New(fault.Failed, "no").WithRetryAfter(hour)), want{state: asynq.TaskStateRetry, counters: [4]string{"1", "0", "0", "0"}, processed: 1, failed: 1}},
		"bury":    {failed(fault.New(fault.Failed, "never").AsPermanent()), want{state: asynq.TaskStateArchived, counters: [4]string{"1", "0", "0", "0"}, processed: 1, failed: 1, end: "dead", record: task.Dead}},
		"return":  {job.Outcome{End: job.Returned}, want{state: asynq.TaskStatePending, counters: [4]string{"0", "0", "0", "0"}}},
		"kill":    {job.Outcome{End: job.Killed, Fault: fault.New(fault.Crash, "x")}, want{state: asynq.TaskStatePending, counters: [4]string{"0", "1", "0", "0"}}},
		"delay":   {job.Outcome{End: job.Returned, Fault: fault.New(fault.Unavailable, "later").WithRetryAfter(hour)}, want{state: asynq.TaskStateScheduled, counters: [4]string{"0", "0", "0", "0"}}},
		"suspect": {job.Outcome{End: job.Killed, Suspect: true, Fault: fault.New(fault.Crash, "x")}, want{state: asynq.TaskStatePending, counters: [4]string{"0", "0", "0", "0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, b broker) {
				lane := newBench(b.client)
				key := submit(t, b.client, 1)[0]
				jobs := lane.Take(5)
				if len(jobs) != 1 || taskInfo(t, b.client, key).State != asynq.TaskStateActive {
					t.Fatalf("took %v", jobs)
				}
				ledger(t, b.client, 1)
				if moved := lane.end(t, move.outcome, jobs[0]); !slices.Equal(moved, []int64{1}) {
					t.Fatalf("moved %v", moved)
				}
				ledger(t, b.client, 0)
				i := info(t, b.client)
				if i.ProcessedTotal != move.want.processed || i.FailedTotal != move.want.failed || i.Processed != move.want.processed || i.Failed != move.want.failed {
					t.Errorf("asynq counts %d processed, %d failed; of the day %d, %d", i.ProcessedTotal, i.FailedTotal, i.Processed, i.Failed)
				}
				compareRecord(t, b.client, key, move.want.record)
				if move.want.state == 0 {
					if i.Size != 0 || b.client.Exists(t.Context(), task.KeysOf(queue).Task(key)).Val() != 0 {
						t.Errorf("it is not gone: %+v", i)
					}
					return
				}
				if got := taskInfo(t, b.client, key); got.State != move.want.state {
					t.Errorf("it is %s, want %s", got.State, move.want.state)
				}
				fields := b.client.HGetAll(t.Context(), task.KeysOf(queue).Task(key)).Val()
				counters := [4]string{fields[task.FieldFailures], fields[task.FieldKills], fields[task.FieldInterruptions], fields[task.FieldLosses]}
				if counters != move.want.counters || fields[task.FieldEnd] != move.want.end || (fields[task.FieldSuspect] == "1") != (name == "suspect") {
					t.Errorf("its hash is %v", fields)
				}
			})
		})
	}
}

// A task that goes back with a delay is due when that is over, rounded up, and is taken by asynq's own forwarder; what made
// it a suspect stays with it.
func TestDelayedReturn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := newBench(b.client)
		key := submit(t, b.client, 1)[0]
		crashed := job.Outcome{End: job.Killed, Suspect: true, Fault: fault.New(fault.Crash, "x")}
		lane.end(t, crashed, lane.Take(1)...)
		began := time.Now()
		later := job.Outcome{End: job.Returned, Fault: fault.New(fault.Unavailable, "later").WithRetryAfter(90 * time.Second)}
		lane.end(t, later, lane.Take(1)...)
		if wait := taskInfo(t, b.client, key).NextProcessAt.Sub(began); wait < 90*time.Second || wait > 93*time.Second {
			t.Errorf("it is due in %s, want 90 s rounded up", wait)
		}
		check(t, asynq.NewInspectorFromRedisClient(b.client).RunTask(queue, key))
		again := lane.Take(1)
		if len(again) != 1 || !again[0].Suspect || again[0].Counters != (task.Counters{}) {
			t.Errorf("it came back as %+v", again)
		}
	})
}

// What is remembered of a task's runs goes with it from run to run, whichever way it goes back, and stands beside a dead letter.
func TestHistoryStaysWithTheTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := newBench(b.client)
		key := submit(t, b.client, 1)[0]
		inspector := asynq.NewInspectorFromRedisClient(b.client)
		for n, o := range []job.Outcome{
			{End: job.Killed, Fault: fault.New(fault.Crash, "x")},
			{End: job.Returned},
			failed(fault.New(fault.Failed, "no").WithRetryAfter(time.Hour)),
			{End: job.Interrupted},
			{End: job.Returned, Fault: fault.New(fault.Unavailable, "later").WithRetryAfter(time.Hour)},
			failed(fault.New(fault.Failed, "never").AsPermanent()),
		} {
			jobs := lane.Take(1)
			if len(jobs) != 1 {
				t.Fatalf("took %v before outcome %d", jobs, n)
			}
			lane.end(t, o, jobs...)
			if state := taskInfo(t, b.client, key).State; state == asynq.TaskStateRetry || state == asynq.TaskStateScheduled {
				check(t, inspector.RunTask(queue, key))
			}
		}
		data := must[[]byte](t)(b.client.HGet(t.Context(), task.KeysOf(queue).Task(key), task.FieldHistory).Bytes())
		var got []string
		for _, a := range must[[]task.Attempt](t)(task.DecodeHistory(data)) {
			got = append(got, a.Message)
		}
		if want := []string{"run 1", "run 2", "run 3", "run 4"}; !slices.Equal(got, want) {
			t.Errorf("its history is %v, want %v", got, want)
		}
	})
}

func compareRecord(t *testing.T, c redis.UniversalClient, key string, state task.State) {
	t.Helper()
	data, err := c.Get(t.Context(), task.KeysOf(queue).Record(key)).Bytes()
	if state == task.Unknown {
		if err == nil {
			t.Error("there is a record")
		}
		return
	}
	check(t, err)
	if got := must[*task.Task](t)(task.DecodeRecord(data)); got.State != state || got.ID.Key != key {
		t.Errorf("its record is %+v", got)
	}
	if ttl := c.TTL(t.Context(), task.KeysOf(queue).Record(key)).Val(); ttl <= 0 || ttl > time.Hour {
		t.Errorf("its record is kept for %s, want an hour", ttl)
	}
}

// A retry's message says what asynq's own would: one more try, the error and when; nothing else of it is lost.
func TestRetryKeepsTheMessage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := newBench(b.client)
		queued := must[*asynq.TaskInfo](t)(asynq.NewClientFromRedisClient(b.client).Enqueue(asynq.NewTask(kind, []byte(`{"a":1}`)),
			asynq.Queue(queue), asynq.MaxRetry(7), asynq.Timeout(time.Minute), asynq.Unique(time.Hour), asynq.Retention(time.Hour)))
		began := time.Now()
		lane.end(t, failed(fault.New(fault.Failed, "bad \xff byte").WithRetryAfter(90*time.Second)), lane.Take(1)...)
		got := taskInfo(t, b.client, queued.ID)
		if got.Retried != 1 || got.MaxRetry != 7 || got.LastErr != "failed: bad \uFFFD byte" || got.Timeout != time.Minute ||
			got.Retention != time.Hour || string(got.Payload) != `{"a":1}` || got.LastFailedAt.Before(began.Add(-time.Second)) {
			t.Errorf("asynq sees %+v", got)
		}
		if wait := got.NextProcessAt.Sub(began); wait < 90*time.Second || wait > 93*time.Second {
			t.Errorf("it is due in %s, want 90 s rounded up", wait)
		}
	})
}

// A finished task of a foreign client lets go of its uniqueness lock, and is kept with its result for as long as the
// client asked for.
func TestForeignTaskIsKept(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane, client := newBench(b.client), asynq.NewClientFromRedisClient(b.client)
		options := []asynq.Option{asynq.Queue(queue), asynq.Unique(time.Hour), asynq.Retention(time.Hour)}
		queued := must[*asynq.TaskInfo](t)(client.Enqueue(asynq.NewTask(kind, []byte(`{}`)), options...))
		if _, err := client.Enqueue(asynq.NewTask(kind, []byte(`{}`)), options...); err == nil {
			t.Fatal("asynq did not lock the task")
		}
		lane.end(t, job.Outcome{End: job.Succeeded, Result: []byte(`{"ok":true}`)}, lane.Take(1)...)
		got := taskInfo(t, b.client, queued.ID)
		if got.State != asynq.TaskStateCompleted || string(got.Result) != `{"ok":true}` || time.Since(got.CompletedAt) > time.Minute || got.Retention != time.Hour {
			t.Errorf("asynq sees %+v", got)
		}
		until := time.Unix(int64(b.client.ZScore(t.Context(), task.KeysOf(queue).CompletedSet(), queued.ID).Val()), 0)
		if left := time.Until(until); left < 59*time.Minute || left > time.Hour {
			t.Errorf("it is kept for %s", left)
		}
		if _, err := client.Enqueue(asynq.NewTask(kind, []byte(`{}`)), options...); err != nil {
			t.Errorf("the same task cannot be enqueued after the end: %v", err)
		}
	})
}

// The lock of a unique task that has passed to another task meanwhile is left alone.
func TestForeignLockOfAnotherTaskStays(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := newBench(b.client)
		must[*asynq.TaskInfo](t)(asynq.NewClientFromRedisClient(b.client).Enqueue(asynq.NewTask(kind, nil), asynq.Queue(queue), asynq.Unique(time.Hour)))
		jobs := lane.Take(1)
		lock := b.client.Keys(t.Context(), "asynq:{"+queue+"}:unique:*").Val()[0]
		check(t, b.client.Set(t.Context(), lock, "another", time.Hour).Err())
		lane.end(t, job.Outcome{End: job.Succeeded}, jobs...)
		if got := b.client.Get(t.Context(), lock).Val(); got != "another" {
			t.Errorf("the lock is %q", got)
		}
	})
}

// The counts of a day expire when asynq's own would, also when they are made by a whole batch.
func TestCountsOfTheDayExpire(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := newBench(b.client)
		submit(t, b.client, 3)
		lane.end(t, failed(fault.New(fault.Failed, "no").AsPermanent()), lane.Take(3)...)
		day := time.Now().UTC().Format(time.DateOnly)
		for _, key := range []string{task.KeysOf(queue).Processed(), task.KeysOf(queue).FailedRuns()} {
			if n := b.client.Get(t.Context(), key+":"+day).Val(); n != "3" {
				t.Errorf("%s of the day is %s", key, n)
			}
			if ttl := b.client.TTL(t.Context(), key+":"+day).Val(); ttl < 89*24*time.Hour || ttl > 90*24*time.Hour {
				t.Errorf("%s of the day expires in %s, want 90 days", key, ttl)
			}
			if ttl := b.client.TTL(t.Context(), key).Val(); ttl > 0 {
				t.Errorf("%s expires", key)
			}
		}
	})
}

// The archive loses who died more than 90 days ago, with their hashes, a thousand at once at most; nobody else, however many there are.
func TestArchiveIsTrimmed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ there, old, gone int }{
		"by age": {there: 100, old: 5, gone: 5}, "never by number": {there: 10_100}, "bounded": {there: 1010, old: 1002, gone: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, b broker) {
				ctx, names := t.Context(), task.KeysOf(queue)
				const batch = 500 // a slow server does not read more in the time that a client has
				p := b.client.Pipeline()
				for i := range c.there {
					died := time.Now().Add(-time.Duration(c.there-i) * time.Second)
					if i < c.old {
						died = died.Add(-90 * 24 * time.Hour)
					}
					p.ZAdd(ctx, names.Archived(), redis.Z{Score: float64(died.Unix()), Member: archived(i)})
					p.HSet(ctx, names.Task(archived(i)), "state", "archived")
					if (i+1)%batch == 0 || i == c.there-1 {
						_, err := p.Exec(ctx)
						check(t, err)
					}
				}
				lane := newBench(b.client)
				keys := submit(t, b.client, 2)
				lane.end(t, failed(fault.New(fault.Failed, "no").AsPermanent()), lane.Take(2)...)
				if n := b.client.ZCard(ctx, names.Archived()).Val(); n != int64(c.there+2-c.gone) {
					t.Errorf("%d are archived, want %d", n, c.there+2-c.gone)
				}
				for i := max(0, c.gone-5); i < c.gone+5; i++ {
					if there := b.client.Exists(ctx, names.Task(archived(i))).Val() == 1; there != (i >= c.gone) {
						t.Errorf("archived task %d: there is %v", i, there)
					}
				}
				for _, key := range keys {
					if taskInfo(t, b.client, key).State != asynq.TaskStateArchived {
						t.Errorf("task %s is not archived", key)
					}
				}
			})
		})
	}
}

func archived(i int) string { return "old" + string(rune('a'+i%26)) + time.Duration(i).String() }
