package intake_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

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
