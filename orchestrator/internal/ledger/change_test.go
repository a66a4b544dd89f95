package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/orchestrator/internal/ledger"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// A dead letter that is retried waits at the tail of its queue with fresh counters and its history; its record is gone, and
// everybody who follows is told. A failed task is due now, at the head.
func TestRetry(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(6)
		r.bury(time.Now(), task.Dead, fault.Timeout, ids[0])
		r.bury(time.Now(), task.Quarantined, fault.Memory, ids[1])
		r.fail(time.Now().Add(time.Hour), ids[2])
		events := r.follow()
		changes, err := r.ledger.Retry(t.Context(), queue, keysOf(ids[0], ids[1], ids[2], ids[0]))
		if err != nil || len(changes) != 3 {
			t.Fatalf("%v, %v", changes, err)
		}
		for i, c := range changes {
			if c.ID != ids[i] || c.State != task.Waiting || c.Refused != "" {
				t.Errorf("%+v", c)
			}
		}
		waiting, _ := r.list(ledger.Query{State: task.Waiting})
		if want := []task.ID{ids[2], ids[3], ids[4], ids[5], ids[0], ids[1]}; !slices.Equal(idsOf(waiting), want) {
			t.Errorf("the queue is %v, want %v", idsOf(waiting), want)
		}
		got, err := r.tasks.Get(t.Context(), ids[0])
		if err != nil || got.State != task.Waiting || got.Counters != (task.Counters{}) || got.Attempts != 0 || len(got.History) != 2 || got.History[0].End != task.EndFailed || !byHand(got.History[1], 0) {
			t.Errorf("the dead letter: %+v, %v", got, err)
		}
		if failed, err := r.tasks.Get(t.Context(), ids[2]); err != nil || failed.Counters.Failures != 2 || len(failed.History) != 1 || !byHand(failed.History[0], 2) {
			t.Errorf("the failed task: %+v, %v", failed, err)
		}
		if alone := r.rdb.HGet(t.Context(), r.keys.Task(ids[1].Key), task.FieldSuspect).Val(); alone != "1" {
			t.Error("the quarantined task may run beside others")
		}
		for _, e := range events(3) {
			if e.State != task.Waiting || !slices.Contains(ids[:3], e.ID) {
				t.Errorf("event %+v", e)
			}
		}
		if n := r.rdb.ZCard(t.Context(), r.keys.Archived()).Val() + r.rdb.ZCard(t.Context(), r.keys.Retry()).Val(); n != 0 {
			t.Errorf("%d tasks are in two places", n)
		}
	})
}

// byHand reports whether an entry of a history says that the task was put back just now, with so many runs that count.
func byHand(a task.Attempt, runs int) bool {
	return a.End == task.EndRetried && a.Number == runs && a.Manager == "here" && time.Since(a.Started) < time.Minute
}

// A dead letter whose deadline has passed has none after it was retried, or it would expire at once; a deadline that is still to come
// stays.
func TestRetryAfterTheDeadline(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Hour).Truncate(time.Second)
		var ids []task.ID
		for _, at := range []time.Time{past, past, future} {
			ids = append(ids, r.submit(1, client.Deadline(at), client.Unique(false))...)
		}
		r.bury(time.Now(), task.Expired, fault.Timeout, ids[0])
		r.bury(time.Now(), task.Dead, fault.HTTPStatus, ids[1:]...)
		if done, err := r.ledger.RetryDead(t.Context(), ledger.Selection{Queue: queue}); done.Changed != 3 || len(done.Refused) > 0 || err != nil {
			t.Fatalf("%+v, %v", done, err)
		}
		for i, want := range []int64{0, 0, future.Unix()} {
			m, err := task.DecodeMessage([]byte(r.rdb.HGet(t.Context(), r.keys.Task(ids[i].Key), "msg").Val()))
			if err != nil || m.Deadline != want || m.Timeout == 0 {
				t.Errorf("task %d: the deadline is %d, want %d, the timeout %d, %v", i, m.Deadline, want, m.Timeout, err)
			}
		}
	})
}

// Dropped tasks are gone from the queue and its hashes, their uniqueness locks too; their records say that they were dropped,
// and who waits for one is told.
func TestDrop(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(4)
		ids = append(ids, r.submit(1, client.Delay(time.Hour), client.Unique(false))...)
		r.bury(time.Now(), task.Dead, fault.Timeout, ids[0])
		r.fail(time.Now().Add(time.Hour), ids[1])
		info, err := r.foreign.EnqueueContext(t.Context(), asynq.NewTask("theirs", []byte("x")), asynq.Queue(queue), asynq.Unique(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		locks := r.rdb.Keys(t.Context(), "asynq:{q}:unique:*").Val()
		if len(locks) != 1 {
			t.Fatalf("uniqueness locks: %v", locks)
		}
		waited := make(chan *task.Task, 1)
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			ended, err := client.Wait(t.Context(), r.tasks, ids[2])
			if err != nil {
				t.Errorf("wait: %v", err)
			}
			waited <- ended
		})
		dropped := []task.ID{ids[0], ids[1], ids[2], ids[4], {Queue: queue, Key: info.ID}}
		events := r.follow()
		changes, err := r.ledger.Drop(t.Context(), queue, keysOf(dropped...))
		if err != nil || len(changes) != 5 {
			t.Fatalf("%v, %v", changes, err)
		}
		events(5)
		for i, c := range changes {
			if c.ID != dropped[i] || c.State != task.Dropped || c.Refused != "" {
				t.Errorf("%+v", c)
			}
			record, err := r.tasks.Get(t.Context(), c.ID)
			if err != nil || record.State != task.Dropped || record.Manager != "here" {
				t.Errorf("the record of %s: %+v, %v", c.ID, record, err)
			}
			if n := r.rdb.Exists(t.Context(), r.keys.Task(c.ID.Key)).Val(); n != 0 {
				t.Errorf("the hash of %s is still there", c.ID)
			}
			if ttl := r.rdb.TTL(t.Context(), r.keys.Record(c.ID.Key)).Val(); ttl <= 0 || ttl > time.Minute {
				t.Errorf("the record is kept for %s", ttl)
			}
		}
		if ended := <-waited; ended == nil || ended.State != task.Dropped {
			t.Errorf("who waited was told %+v", ended)
		}
		if left, _ := r.list(ledger.Query{State: task.Waiting}); !slices.Equal(idsOf(left), ids[3:4]) {
			t.Errorf("left: %v", idsOf(left))
		}
		if r.rdb.Exists(t.Context(), locks[0]).Val() != 0 {
			t.Error("the uniqueness lock is still there")
		}
	})
}

// What cannot be retried or dropped is left as it is, with the reason: running tasks above all.
func TestRefused(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(2)
		r.take(1)
		scheduled := r.submit(1, client.Delay(time.Hour), client.Unique(false))[0]
		cancelled := r.submit(1, client.Unique(false))[0]
		if _, err := r.tasks.Cancel(t.Context(), cancelled); err != nil {
			t.Fatal(err)
		}
		check := func(what string, do func(string) ([]ledger.Change, error), key string, state task.State, want string) {
			t.Helper()
			c, err := do(key)
			if err != nil || len(c) != 1 || c[0].State != state || !strings.Contains(c[0].Refused, want) {
				t.Errorf("%s: %+v, %v; want %s, %q", what, c, err, state, want)
			}
		}
		retry := func(key string) ([]ledger.Change, error) { return r.ledger.Retry(t.Context(), queue, []string{key}) }
		drop := func(key string) ([]ledger.Change, error) { return r.ledger.Drop(t.Context(), queue, []string{key}) }
		check("retry running", retry, ids[0].Key, task.Running, "being run")
		check("drop running", drop, ids[0].Key, task.Running, "cancel it first")
		check("retry waiting", retry, ids[1].Key, task.Waiting, "waits")
		check("retry scheduled", retry, scheduled.Key, task.Waiting, "time")
		check("retry cancelled", retry, cancelled.Key, task.Cancelled, "has ended as cancelled")
		check("drop cancelled", drop, cancelled.Key, task.Cancelled, "has ended as cancelled")
		check("retry nothing", retry, "none", task.Unknown, "no such task")
		if n := r.rdb.LLen(t.Context(), r.keys.Active()).Val(); n != 1 {
			t.Errorf("%d tasks are active, want 1", n)
		}
		var refused *ledger.InvalidError
		if _, err := r.ledger.Drop(t.Context(), queue, make([]string, ledger.MaxIDs+1)); !errors.As(err, &refused) {
			t.Errorf("too many at once: %v", err)
		}
	})
}

// All dead letters of a queue, or those that died for one reason, are put back or dropped, in however many batches, each once;
// those that die meanwhile and tasks in other states are left alone.
func TestAllDead(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(330)
		at := time.Now().Add(-time.Minute)
		for i, id := range ids[:320] { // mixed, and many in one second
			kind := fault.Timeout
			if i%3 == 0 {
				kind = fault.HTTPStatus
			}
			r.bury(at.Add(time.Duration(i/100)*time.Second), task.Dead, kind, id)
		}
		r.bury(time.Now().Add(time.Hour), task.Dead, fault.HTTPStatus, ids[320]) // dies later
		done, err := r.ledger.RetryDead(t.Context(), ledger.Selection{Queue: queue, Filter: ledger.Filter{Reason: "http_status"}})
		if err != nil || done.Changed != 107 || len(done.Refused) != 0 || done.Next != "" {
			t.Errorf("retried %+v, %v; want 107", done, err)
		}
		waiting, _ := r.list(ledger.Query{State: task.Waiting})
		var want []task.ID
		want = append(want, ids[321:]...)
		for i, id := range ids[:320] {
			if i%3 == 0 {
				want = append(want, id)
			}
		}
		if !sameSet(idsOf(waiting), want) {
			t.Errorf("%d tasks wait, want %d", len(waiting), len(want))
		}
		if done, err = r.ledger.DropDead(t.Context(), ledger.Selection{Queue: queue}); err != nil || done.Changed != 213 {
			t.Errorf("dropped %+v, %v; want 213", done, err)
		}
		if left, _ := r.list(ledger.Query{State: task.Dead}); !slices.Equal(idsOf(left), ids[320:321]) {
			t.Errorf("left: %v", idsOf(left))
		}
	})
}

// Two operators who change the same tasks at once, and a client who cancels them, lose none and do nothing twice.
func TestRaces(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(200)
		r.bury(time.Now(), task.Dead, fault.Timeout, ids...)
		var wg sync.WaitGroup
		var mu sync.Mutex
		retried, dropped := map[task.ID]int{}, map[task.ID]int{}
		note := func(into map[task.ID]int, changes []ledger.Change, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			for _, c := range changes {
				if c.Refused == "" {
					into[c.ID]++
				}
			}
		}
		for range 2 {
			wg.Go(func() {
				changes, err := r.ledger.Retry(t.Context(), queue, keysOf(ids...))
				note(retried, changes, err)
			})
			wg.Go(func() {
				changes, err := r.ledger.Drop(t.Context(), queue, keysOf(ids...))
				note(dropped, changes, err)
			})
		}
		wg.Wait()
		for _, id := range ids {
			if retried[id] > 1 || dropped[id] != 1 {
				t.Errorf("%s was retried %d times and dropped %d times", id, retried[id], dropped[id])
			}
		}
		left := r.rdb.LLen(t.Context(), r.keys.Pending()).Val() + r.rdb.ZCard(t.Context(), r.keys.Archived()).Val()
		if left != 0 {
			t.Errorf("%d tasks are left", left)
		}
	})
}

// asynq's own tools see the queue paused and resumed; pausing twice is no error.
func TestPause(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		r.submit(1)
		wake := r.rdb.Subscribe(t.Context(), r.keys.WakeChannel())
		defer func() { _ = wake.Close() }()
		if _, err := wake.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := r.ledger.Pause(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
		}
		if q, err := r.inspector.GetQueueInfo(queue); err != nil || !q.Paused {
			t.Errorf("asynq sees %+v, %v", q, err)
		}
		for range 2 {
			if err := r.ledger.Resume(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
		}
		if q, err := r.inspector.GetQueueInfo(queue); err != nil || q.Paused {
			t.Errorf("asynq sees %+v, %v", q, err)
		}
		if _, err := wake.ReceiveTimeout(t.Context(), 5*time.Second); err != nil {
			t.Errorf("managers were not woken: %v", err)
		}
	})
}

// While Redis is frozen or gone every call says so within a second.
func TestAway(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		if r.server == nil {
			t.Skip("the embedded Redis cannot freeze without its manager")
		}
		ids := r.submit(1)
		r.ledger = ledger.New(r.ledger.Deps)
		r.server.Freeze()
		defer r.server.Thaw()
		for name, call := range map[string]func() error{
			"list": func() error {
				_, err := r.ledger.List(t.Context(), ledger.Query{Queue: queue, State: task.Dead})
				return err
			},
			"retry":  func() error { _, err := r.ledger.Retry(t.Context(), queue, keysOf(ids...)); return err },
			"drop":   func() error { _, err := r.ledger.Drop(t.Context(), queue, keysOf(ids...)); return err },
			"dead":   func() error { _, err := r.ledger.RetryDead(t.Context(), ledger.Selection{Queue: queue}); return err },
			"pause":  func() error { return r.ledger.Pause(t.Context(), queue) },
			"resume": func() error { return r.ledger.Resume(t.Context(), queue) },
			"exists": func() error { _, err := r.ledger.Exists(t.Context(), queue); return err },
		} {
			began := time.Now()
			err := call()
			if took := time.Since(began); took > time.Second+500*time.Millisecond {
				t.Errorf("%s took %s", name, took)
			}
			if !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), "Redis") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
