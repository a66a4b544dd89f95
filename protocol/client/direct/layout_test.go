package direct_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/clienttest/standin"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// What this package writes is what asynq's own tools read: every field, in the set where it belongs.
func TestAsynqSeesOurTasks(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := connect(t, server.URL())
	standin.Start(t, rdb, "q", standin.Options{Idle: true})
	c := open(t, server.URL())
	ctx := t.Context()
	now, err := c.Submit(ctx, "q", map[string]any{"do": "return", "value": 1})
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	before := time.Now()
	later, err := c.Submit(ctx, "q", map[string]any{"do": "return", "value": 2}, client.Delay(90*time.Second+time.Millisecond))
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	inspector := asynq.NewInspectorFromRedisClient(rdb)
	queues, err := inspector.Queues()
	if err != nil || len(queues) != 1 || queues[0] != "q" {
		t.Errorf("asynq sees the queues %v, %v", queues, err)
	}
	pending, err := inspector.GetTaskInfo("q", now.ID.Key)
	if err != nil || pending.State != asynq.TaskStatePending || pending.Type != standin.Kind || string(pending.Payload) != `{"do":"return","value":1}` {
		t.Errorf("asynq sees %+v, %v", pending, err)
	}
	if err == nil && (pending.Retention != 0 || pending.MaxRetry < 1<<30 || pending.Timeout < 365*24*time.Hour) {
		t.Errorf("asynq would end the task itself: %+v", pending)
	}
	scheduled, err := inspector.GetTaskInfo("q", later.ID.Key)
	if err != nil || scheduled.State != asynq.TaskStateScheduled || scheduled.NextProcessAt.Before(before.Add(90*time.Second)) {
		t.Errorf("asynq sees %+v, %v; want a scheduled task that is due after %s", scheduled, err, before.Add(90*time.Second))
	}
	info, err := inspector.GetQueueInfo("q")
	if err != nil || info.Pending != 1 || info.Scheduled != 1 || info.Latency <= 0 {
		t.Errorf("asynq counts %+v, %v; want one pending, one scheduled and a latency", info, err)
	}
	if err := inspector.DeleteTask("q", now.ID.Key); err != nil {
		t.Errorf("asynq deletes our task: %v", err)
	}
	if _, err := c.Get(ctx, now.ID); !errors.Is(err, client.ErrUnknownTask) {
		t.Errorf("a deleted task gives %v", err)
	}
}

// A plain asynq server takes and runs what this package submits, delayed tasks included.
func TestAsynqServesOurTasks(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := connect(t, server.URL())
	standin.Start(t, rdb, "q", standin.Options{Idle: true})
	c := open(t, server.URL())
	got := make(chan string, 2)
	worker := asynq.NewServerFromRedisClient(rdb, asynq.Config{
		Queues: map[string]int{"q": 1}, LogLevel: asynq.FatalLevel, TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 50 * time.Millisecond,
	})
	err := worker.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		got <- t.Type() + " " + string(t.Payload())
		return nil
	}))
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	defer worker.Shutdown()
	for i, delay := range []time.Duration{0, time.Second} {
		if _, err := c.Submit(t.Context(), "q", map[string]any{"do": "return", "value": i}, client.Delay(delay)); err != nil {
			t.Fatalf("submit: %v", err)
		}
	}
	for _, want := range []string{`misbehave {"do":"return","value":0}`, `misbehave {"do":"return","value":1}`} {
		select {
		case have := <-got:
			if have != want {
				t.Errorf("asynq ran %s, want %s", have, want)
			}
		case <-time.After(within):
			t.Fatalf("asynq did not run %s", want)
		}
	}
}

// Tasks of a foreign asynq client are found in each of their states, can be joined in none of ours, and end a wait.
func TestWeSeeAsynqTasks(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := connect(t, server.URL())
	standin.Start(t, rdb, "q", standin.Options{Idle: true})
	c := open(t, server.URL())
	foreign := asynq.NewClientFromRedisClient(rdb)
	inspector := asynq.NewInspectorFromRedisClient(rdb)
	enqueue := func(options ...asynq.Option) task.ID {
		t.Helper()
		info, err := foreign.Enqueue(asynq.NewTask("misbehave", []byte(`{"do":"return"}`)), append(options, asynq.Queue("q"))...)
		if err != nil {
			t.Fatalf("enqueue: %v", err)
		}
		return task.ID{Queue: "q", Key: info.ID}
	}
	want := func(id task.ID, state task.State) *task.Task {
		t.Helper()
		got, err := c.Get(t.Context(), id)
		if err != nil || got.State != state || got.Kind != "misbehave" {
			t.Fatalf("get gave %+v, %v; want %s", got, err, state)
		}
		return got
	}
	pending := enqueue(asynq.Unique(time.Hour))
	if got := want(pending, task.Waiting); !json.Valid(got.Payload) || got.Submitted.IsZero() {
		t.Errorf("a pending task is %+v", got)
	}
	delayed := enqueue(asynq.ProcessIn(time.Hour))
	if got := want(delayed, task.Waiting); time.Until(got.RunAt) < 59*time.Minute {
		t.Errorf("a delayed task runs at %s", got.RunAt)
	}
	dead := enqueue(asynq.ProcessIn(time.Hour))
	if err := inspector.ArchiveTask("q", dead.Key); err != nil {
		t.Fatalf("archive: %v", err)
	}
	want(dead, task.Dead)
	if ended, err := client.Wait(t.Context(), c, dead); err != nil || ended.State != task.Dead {
		t.Errorf("a wait for a dead letter gave %+v, %v", ended, err)
	}
	for _, id := range []task.ID{pending, delayed} {
		if state, err := c.Cancel(t.Context(), id); err != nil || state != task.Cancelled {
			t.Errorf("cancel gave %s, %v", state, err)
		}
	}
	enqueue(asynq.Unique(time.Hour)) // the lock of the cancelled one is gone
	group := enqueue(asynq.Group("g"))
	want(group, task.Waiting)
	if state, err := c.Cancel(t.Context(), group); err == nil {
		t.Errorf("cancelling a task in a group, which nobody serves, said %s", state)
	}
}

// A failed task of asynq says when it is tried again and with what words it failed; its kind of fault is read from them.
func TestRetryState(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := connect(t, server.URL())
	standin.Start(t, rdb, "q", standin.Options{Idle: true})
	c := open(t, server.URL())
	failures := map[string]error{"typed": fault.New(fault.Unreachable, "no answer from x: tried twice"), "plain": errors.New("oh: no")}
	worker := asynq.NewServerFromRedisClient(rdb, asynq.Config{
		Queues: map[string]int{"q": 1}, LogLevel: asynq.FatalLevel, TaskCheckInterval: 20 * time.Millisecond,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Hour },
	})
	err := worker.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		var p struct{ Note string }
		if err := json.Unmarshal(t.Payload(), &p); err != nil {
			return err
		}
		return failures[p.Note]
	}))
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	defer worker.Shutdown()
	wants := map[string]*fault.Fault{"typed": fault.New(fault.Unreachable, "no answer from x: tried twice"), "plain": fault.New(fault.Failed, "oh: no")}
	for name, want := range wants {
		s, err := c.Submit(t.Context(), "q", map[string]any{"do": "fail", "note": name})
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		var got *task.Task
		eventually(t, "it failed", func() bool {
			got, err = c.Get(t.Context(), s.ID)
			return err == nil && got.State == task.Failed
		})
		if got.Fault == nil || *got.Fault != *want || got.Attempts != 1 || time.Until(got.RunAt) < 50*time.Minute {
			t.Errorf("%s: it is %+v with %+v, want %+v", name, got, got.Fault, want)
		}
		if again, err := c.Submit(t.Context(), "q", map[string]any{"do": "fail", "note": name}); err != nil || !again.Joined || again.State != task.Failed {
			t.Errorf("%s: a second submit gave %+v, %v; want joined and failed", name, again, err)
		}
		if state, err := c.Cancel(t.Context(), s.ID); err != nil || state != task.Cancelled {
			t.Errorf("%s: cancel gave %s, %v", name, state, err)
		}
	}
}

// A submit into an empty queue wakes managers, and one into a queue with tasks says nothing.
func TestWake(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := connect(t, server.URL())
	standin.Start(t, rdb, "q", standin.Options{Idle: true})
	c := open(t, server.URL())
	ps := rdb.Subscribe(t.Context(), task.KeysOf("q").WakeChannel())
	defer func() { _ = ps.Close() }()
	if _, err := ps.Receive(t.Context()); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	var first task.ID
	for i := range 5 {
		s, err := c.Submit(t.Context(), "q", map[string]any{"do": "return", "value": i})
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		if i == 0 {
			first = s.ID
		}
	}
	if err := rdb.Publish(t.Context(), task.KeysOf("q").WakeChannel(), "last").Err(); err != nil {
		t.Fatalf("publish: %v", err)
	}
	for _, want := range []string{first.Key, "last"} {
		m, err := ps.ReceiveMessage(t.Context())
		if err != nil || m.Payload != want {
			t.Errorf("woken with %+v, %v; want %s", m, err, want)
		}
	}
}

// A hash that only a late counter left is no task: it is unknown, and a submit takes its place.
func TestGhost(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := connect(t, server.URL())
	standin.Start(t, rdb, "q", standin.Options{})
	c := open(t, server.URL())
	s, err := c.Submit(t.Context(), "q", map[string]any{"do": "return", "value": "g"})
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	if _, err := client.Wait(t.Context(), c, s.ID); err != nil {
		t.Fatalf("wait: %v", err)
	}
	keys := task.KeysOf("q")
	if err := rdb.Del(t.Context(), keys.Record(s.ID.Key)).Err(); err != nil {
		t.Fatalf("delete the record: %v", err)
	}
	if err := rdb.HIncrBy(t.Context(), keys.Task(s.ID.Key), task.FieldFailures, 1).Err(); err != nil {
		t.Fatalf("count: %v", err)
	}
	if got, err := c.Get(t.Context(), s.ID); !errors.Is(err, client.ErrUnknownTask) {
		t.Errorf("get gave %+v, %v", got, err)
	}
	again, err := c.Submit(t.Context(), "q", map[string]any{"do": "return", "value": "g"})
	if err != nil || again.Joined {
		t.Fatalf("submit gave %+v, %v", again, err)
	}
	if ended, err := client.Wait(t.Context(), c, s.ID); err != nil || ended.State != task.Completed {
		t.Errorf("wait gave %+v, %v", ended, err)
	}
}
