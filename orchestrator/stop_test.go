package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A stop with 200 tasks queued, 20 buffered and 4 running leaves nothing active: each unfinished task is pending with
// unchanged counters but for one interruption of those that ran, the ones given back first in line and in their old
// order; a restart completes each exactly once.
func TestStopGivesEverythingBack(t *testing.T) {
	t.Parallel()
	const running, buffered, queued = 4, 20, 200
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "drain_timeout: 1s",
		fmt.Sprintf("max_workers: %d, slots: 1, buffer: %d", running, buffered)).start()
	c := straight(t, r)
	rdb := redis.NewClient(&redis.Options{Addr: r.Addr()})
	defer func() { _ = rdb.Close() }()

	var ids []task.ID
	for i := range running + buffered + queued {
		submitted, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "sleep", "ms": sleepOf(i, running), "times": 1, "value": i})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, submitted.ID)
	}
	keys := task.KeysOf("misbehave")
	eventually(t, "four run and twenty are buffered", func() error {
		if n := rdb.LLen(t.Context(), keys.Active()).Val(); n != running+buffered {
			return fmt.Errorf("%d are active", n)
		}
		if n := m.queue(t, "misbehave").GetRunning(); n != running { // taken is not running: the workers may be starting
			return fmt.Errorf("%d run", n)
		}
		return nil
	})
	m.stop()

	if n := rdb.LLen(t.Context(), keys.Active()).Val(); n != 0 {
		t.Errorf("%d tasks are still active", n)
	}
	if n := rdb.ZCard(t.Context(), keys.Lease()).Val(); n != 0 {
		t.Errorf("%d leases are left", n)
	}
	pending := rdb.LRange(t.Context(), keys.Pending(), 0, -1).Val()
	slices.Reverse(pending) // the head of the queue is the list's right end
	if len(pending) != len(ids) {
		t.Fatalf("%d tasks are pending, want %d", len(pending), len(ids))
	}
	for i, key := range pending {
		if key != ids[i].Key {
			t.Fatalf("place %d in the queue has task %s, want %s", i, key, ids[i].Key)
		}
	}
	for i, id := range ids {
		wantCounters(t, c, id, task.Counters{Interruptions: oneIf(i < running)})
	}
	if !strings.Contains(m.output.String(), "msg=stopped finished=0 returned=24 left=0") {
		t.Errorf("the report is not the last line, or not true:\n%s", m.output)
	}

	m.start()
	ended, err := client.WaitAll(t.Context(), c, ids...)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range ended {
		if e.State != task.Completed || string(e.Result) != fmt.Sprint(i) || e.Attempts != 1+oneIf(i < running) {
			t.Errorf("task %d: %s, result %s, %d attempts", i, e.State, e.Result, e.Attempts)
		}
	}
	inspector := asynq.NewInspectorFromRedisClient(rdb)
	info, err := inspector.GetQueueInfo("misbehave")
	if err != nil {
		t.Fatal(err)
	}
	if info.ProcessedTotal != len(ids) || info.Size != 0 {
		t.Errorf("asynq counts %d processed and %d left, want %d and 0", info.ProcessedTotal, info.Size, len(ids))
	}
	m.stop()
}

// sleepOf gives the first tasks a sleep, in their first run, that is longer than any stop, and the others none.
func sleepOf(i, running int) int {
	if i < running {
		return 60_000
	}
	return 0
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func wantCounters(t *testing.T, c client.Client, id task.ID, want task.Counters) {
	t.Helper()
	got, err := c.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got.Counters != want {
		t.Errorf("task %s: counters %+v, want %+v; its runs: %+v", id, got.Counters, want, got.History)
	}
}

// A worker killed with SIGKILL costs its running task one kill; the task runs again and completes.
func TestKilledWorkerCostsOneKill(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1").start()
	c := straight(t, r)
	submitted, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "sleep", "ms": 60_000, "times": 1, "value": "done"})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the task runs", func() error { return m.busy(t, "misbehave") }) // Redis says so of one that is held, too
	victim := m.workerOf(t, "misbehave")
	kill(t, victim)
	ended, err := client.Wait(t.Context(), c, submitted.ID)
	if err != nil {
		t.Fatal(err)
	}
	if ended.State != task.Completed || ended.Counters != (task.Counters{Kills: 1}) || ended.Attempts != 2 {
		t.Errorf("%s, %+v, %d attempts; want completed, one kill, two attempts", ended.State, ended.Counters, ended.Attempts)
	}
	m.stop()
}

// Workers are processes of their own that come with the load, up to max_workers, and go when they are idle.
func TestWorkersFollowTheLoad(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 3, worker_idle: 1s").start()
	c := straight(t, r)
	var ids []task.ID
	for i := range 12 {
		s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "sleep", "ms": 300, "value": i})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	most := 0
	done := make(chan error, 1)
	go func() {
		_, err := client.WaitAll(context.WithoutCancel(t.Context()), c, ids...)
		done <- err
	}()
	eventually(t, "all are done", func() error {
		most = max(most, len(childrenOf(t, m.process.Process.Pid, "misbehave")))
		select {
		case err := <-done:
			return err
		default:
			return errors.New("they run")
		}
	})
	if most != 3 {
		t.Errorf("at most %d workers were seen, want 3", most)
	}
	eventually(t, "idle workers go", func() error {
		if left := childrenOf(t, m.process.Process.Pid, "misbehave"); len(left) > 0 {
			return fmt.Errorf("%d are there", len(left))
		}
		return nil
	})
	m.stop()
}

// A task that a foreign asynq client enqueues is served like any other.
func TestForeignClient(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "").start()
	foreign := asynq.NewClient(asynq.RedisClientOpt{Addr: r.Addr()})
	defer func() { _ = foreign.Close() }()
	info, err := foreign.EnqueueContext(t.Context(), asynq.NewTask("misbehave", []byte(`{"do":"return","value":7}`)), asynq.Queue("misbehave"), asynq.MaxRetry(0))
	if err != nil {
		t.Fatal(err)
	}
	c := straight(t, r)
	ended, err := client.Wait(t.Context(), c, task.ID{Queue: "misbehave", Key: info.ID})
	if err != nil {
		t.Fatal(err)
	}
	if ended.State != task.Completed || string(ended.Result) != "7" {
		t.Errorf("%s with %s, want completed with 7", ended.State, ended.Result)
	}
	m.stop()
}

// A manager that cannot start says why, exits with 1 and leaves no socket behind; a second manager in the same state
// directory does not disturb the first.
func TestFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	m := setUp(t, "{embedded: true}", "", "").start()
	second := &manager{t: t, dir: m.dir, config: m.config}
	if code, output := second.runOnce(); code != 1 || !strings.Contains(output, "another") {
		t.Errorf("a second manager ended with %d:\n%s", code, output)
	}
	if _, err := m.connect(t).Submit(t.Context(), "misbehave", map[string]any{"do": "return"}); err != nil {
		t.Errorf("the first manager was disturbed: %v", err)
	}
	m.stop()
	left, err := filepath.Glob(filepath.Join(m.dir, "state", "*.sock"))
	if err != nil || len(left) > 0 {
		t.Errorf("sockets are left: %v, %v", left, err)
	}
}
