package intake_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/protocol/task"
)

// call is one script that asynq ran.
type call struct {
	keys     []string
	deadline bool
}

// recorder is a Redis client that takes down which scripts asynq runs.
type recorder struct {
	redis.UniversalClient
	mu    sync.Mutex
	calls []call
}

func (r *recorder) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	r.mu.Lock()
	r.calls = append(r.calls, call{keys: slices.Clone(keys), deadline: intake.EndsRun(ctx)})
	r.mu.Unlock()
	return r.UniversalClient.EvalSha(ctx, sha, keys, args...)
}

// about returns the scripts that asynq ran about a task.
func (r *recorder) about(key string) (found []call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if k, ok := intake.TaskOf(queue, c.keys); ok && k == key {
			found = append(found, c)
		}
	}
	return found
}

func (r *recorder) dequeues() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if intake.IsDequeue(queue, c.keys) {
			n++
		}
	}
	return n
}

// serve runs a plain asynq.Server on the recorder until the test has seen enough.
func (r *recorder) serve(t *testing.T, handler asynq.HandlerFunc, enough func() bool) {
	t.Helper()
	s := asynq.NewServerFromRedisClient(r, asynq.Config{
		Concurrency: 4, Queues: map[string]int{queue: 1}, TaskCheckInterval: time.Millisecond,
		DelayedTaskCheckInterval: time.Minute, ShutdownTimeout: time.Millisecond, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Hour },
	})
	check(t, s.Start(handler))
	until(t, "asynq has done what the test waits for", enough)
	s.Shutdown()
}

// The gateway knows asynq v0.26.0 by the keys of its scripts: a dequeue by pending and paused, and the end of a run,
// whichever it is, by the task's hash and by a context with a deadline. This fails when asynq changes either.
func TestGatewayKnowsAsynqsScripts(t *testing.T) {
	t.Parallel()
	for _, end := range []struct {
		name    string
		options []asynq.Option
		handler asynq.HandlerFunc
	}{
		{name: "done", handler: func(context.Context, *asynq.Task) error { return nil }},
		{name: "done, unique", options: []asynq.Option{asynq.Unique(time.Hour)}, handler: func(context.Context, *asynq.Task) error { return nil }},
		{name: "complete", options: []asynq.Option{asynq.Retention(time.Hour)}, handler: func(context.Context, *asynq.Task) error { return nil }},
		{name: "complete, unique", options: []asynq.Option{asynq.Retention(time.Hour), asynq.Unique(time.Hour)}, handler: func(context.Context, *asynq.Task) error { return nil }},
		{name: "retry", handler: func(context.Context, *asynq.Task) error { return errors.New("no") }},
		{name: "archive", options: []asynq.Option{asynq.MaxRetry(0)}, handler: func(context.Context, *asynq.Task) error { return errors.New("no") }},
		{name: "revoke", handler: func(context.Context, *asynq.Task) error { return asynq.RevokeTask }},
		{name: "deadline", options: []asynq.Option{asynq.Deadline(time.Now().Add(-time.Hour))}, handler: func(context.Context, *asynq.Task) error { return nil }},
	} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			b := redisServer(t, testenvSocket())
			r := &recorder{UniversalClient: b.client}
			client := asynq.NewClientFromRedisClient(b.client)
			queued := must[*asynq.TaskInfo](t)(client.Enqueue(asynq.NewTask(kind, []byte(`{}`)), append(end.options, asynq.Queue(queue))...))
			r.serve(t, end.handler, func() bool { return len(r.about(queued.ID)) > 0 })
			if r.dequeues() == 0 {
				t.Error("no dequeue was recognised")
			}
			for _, c := range r.about(queued.ID) {
				if !c.deadline {
					t.Errorf("the script on %v ends a run, but its context has no deadline", c.keys)
				}
			}
			if i := info(t, b.client); i.Active != 0 {
				t.Errorf("a run was ended by a script that was not recognised: %+v", i)
			}
		})
	}
}

// A requeue at asynq's shutdown is known as the end of a run too.
func TestGatewayKnowsAsynqsRequeue(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenvSocket())
	r := &recorder{UniversalClient: b.client}
	queued := must[*asynq.TaskInfo](t)(asynq.NewClientFromRedisClient(b.client).Enqueue(asynq.NewTask(kind, nil), asynq.Queue(queue)))
	began := make(chan struct{})
	r.serve(t, func(ctx context.Context, _ *asynq.Task) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}, func() bool {
		select {
		case <-began:
			return true
		default:
			return false
		}
	})
	calls := r.about(queued.ID)
	if len(calls) != 1 || !calls[0].deadline || !slices.Contains(calls[0].keys, task.KeysOf(queue).Pending()) {
		t.Errorf("the requeue was seen as %+v", calls)
	}
}

// What asynq's recoverer does with the task of a dead manager is not taken for the end of a run: its context has no deadline.
func TestGatewayKnowsAsynqsRecoverer(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenvSocket())
	names := task.KeysOf(queue)
	key := submit(t, b.client, 1)[0]
	orphan(t, b.client, key)
	r := &recorder{UniversalClient: b.client}
	r.serve(t, func(context.Context, *asynq.Task) error { return nil }, func() bool { return len(r.about(key)) > 0 })
	for _, c := range r.about(key) {
		if c.deadline || !slices.Contains(c.keys, names.Retry()) {
			t.Errorf("the recoverer's script is %+v", c)
		}
	}
}

// orphan makes a pending task look like one that a manager took an hour ago and died.
func orphan(t *testing.T, c redis.UniversalClient, key string) {
	t.Helper()
	ctx, names := t.Context(), task.KeysOf(queue)
	check(t, c.LMove(ctx, names.Pending(), names.Active(), "RIGHT", "LEFT").Err())
	check(t, c.HSet(ctx, names.Task(key), "state", "active", task.FieldHolder, "gone").Err())
	check(t, c.ZAdd(ctx, names.Lease(), redis.Z{Score: float64(time.Now().Add(-time.Hour).Unix()), Member: key}).Err())
}

// A task of a manager that died long ago is run by the next that starts.
func TestOrphanRunsAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		key := submit(t, b.client, 1)[0]
		orphan(t, b.client, key)
		m := start(t, b.client, 1, 1, atOnce)
		until(t, "the orphan has run", func() bool { return slices.Contains(m.pool.taken(), key) })
		until(t, "it has been settled", func() bool { return m.in.InHand() == 0 })
		check(t, m.stop())
		ledger(t, b.client, 0)
	})
}

// The names of keys that asynq writes are those of package task: asynq's own inspector finds what the lane leaves behind.
func TestNamesAreAsynqs(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenvSocket())
	queued := must[*asynq.TaskInfo](t)(asynq.NewClientFromRedisClient(b.client).Enqueue(asynq.NewTask(kind, nil), asynq.Queue(queue)))
	names := task.KeysOf(queue)
	if n := b.client.Exists(t.Context(), names.Task(queued.ID), names.Pending(), task.AsynqQueuesKey).Val(); n != 3 {
		t.Errorf("%d of 3 keys are there: %v", n, b.client.Keys(t.Context(), "*").Val())
	}
	check(t, asynq.NewInspectorFromRedisClient(b.client).PauseQueue(queue))
	if b.client.Exists(t.Context(), names.Paused()).Val() != 1 || !strings.HasPrefix(names.Paused(), "asynq:{"+queue+"}:") {
		t.Error("a paused queue is not seen as one")
	}
}
