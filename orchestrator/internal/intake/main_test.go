package intake_test

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LateDials()) }

// queue and kind are those of every test: each has a Redis of its own.
const (
	queue = "work"
	kind  = "job"
)

// broker is a Redis that belongs to one test.
type broker struct {
	client *redis.Client
	server *testenv.Redis // nil for the one in this process
}

// onBoth runs a test on a real redis-server and on the in-process one that the embedded broker is made of.
func onBoth(t *testing.T, test func(t *testing.T, b broker)) {
	t.Helper()
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		test(t, redisServer(t, testenvSocket()))
	})
	t.Run("in-process", func(t *testing.T) {
		t.Parallel()
		m := miniredis.RunT(t)
		test(t, broker{client: connect(t, "tcp", m.Addr())})
	})
}

func redisServer(t testing.TB, o testenv.RedisOptions) broker {
	t.Helper()
	server := testenv.StartRedis(t, o)
	return broker{client: connect(t, server.Network(), server.Addr()), server: server}
}

// connect makes a client as the manager makes its own.
func connect(t testing.TB, network, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Network: network, Addr: addr, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// journal collects log lines.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(p))
	return len(p), nil
}

func (j *journal) with(text string) (found []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if strings.Contains(l, text) {
			found = append(found, l)
		}
	}
	return found
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// patience is how long a test waits for what must come, on a machine that runs many tests at once.
const patience = 30 * time.Second

// until polls.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(patience)
	defer end.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not in %s: %s", patience, what)
		}
	}
}

// must returns a function that takes what a call returned and ends the test on an error.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// submit enqueues tasks as a client of Drover does, oldest first, and returns their keys.
func submit(t testing.TB, c redis.UniversalClient, n int) []string {
	t.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%05d", i)
		submitOne(t, c, keys[i], `{"n":`+fmt.Sprint(i)+`}`)
	}
	return keys
}

func submitOne(t testing.TB, c redis.UniversalClient, key, payload string) {
	t.Helper()
	ctx, names := context.Background(), task.KeysOf(queue)
	now := time.Now()
	message := task.NewMessage(task.ID{Queue: queue, Key: key}, kind, []byte(payload), now)
	_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, task.AsynqQueuesKey, queue)
		p.HSet(ctx, names.Task(key), "msg", message.Encode(), "state", "pending", "pending_since", now.UnixNano())
		p.LPush(ctx, names.Pending(), key)
		p.Publish(ctx, names.WakeChannel(), key)
		return nil
	})
	check(t, err)
}

// waiting returns the keys of the pending tasks, the head of the queue first.
func waiting(t testing.TB, c redis.UniversalClient) []string {
	t.Helper()
	keys := must[[]string](t)(c.LRange(context.Background(), task.KeysOf(queue).Pending(), 0, -1).Result())
	head := make([]string, 0, len(keys))
	for i := len(keys) - 1; i >= 0; i-- {
		head = append(head, keys[i])
	}
	return head
}

// info returns asynq's own view of the queue.
func info(t testing.TB, c redis.UniversalClient) *asynq.QueueInfo {
	t.Helper()
	return must[*asynq.QueueInfo](t)(asynq.NewInspectorFromRedisClient(c).GetQueueInfo(queue))
}

// taskInfo returns asynq's own view of a task.
func taskInfo(t testing.TB, c redis.UniversalClient, key string) *asynq.TaskInfo {
	t.Helper()
	return must[*asynq.TaskInfo](t)(asynq.NewInspectorFromRedisClient(c).GetTaskInfo(queue, key))
}

// ledger checks that every trace of what is not active has gone: leases, holders.
func ledger(t testing.TB, c redis.UniversalClient, active int64) {
	t.Helper()
	ctx, names := context.Background(), task.KeysOf(queue)
	if n := must[int64](t)(c.LLen(ctx, names.Active()).Result()); n != active {
		t.Errorf("%d tasks are active, want %d", n, active)
	}
	if n := must[int64](t)(c.ZCard(ctx, names.Lease()).Result()); n != active {
		t.Errorf("there are %d leases, want %d", n, active)
	}
	held := int64(0)
	for _, key := range must[[]string](t)(c.Keys(ctx, names.TaskPrefix()+"*").Result()) {
		if must[bool](t)(c.HExists(ctx, key, task.FieldHolder).Result()) {
			held++
		}
	}
	if held != active {
		t.Errorf("%d tasks bear the token of a holder, want %d", held, active)
	}
}

func testenvSocket() testenv.RedisOptions { return testenv.RedisOptions{UnixSocket: true} }

func equal(a, b map[string]any) bool { return reflect.DeepEqual(a, b) }
