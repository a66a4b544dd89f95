package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
)

func option(b *running) asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Addr: b.Address(), Password: b.Password()}
}

// work runs an asynq server until ready says so, and returns the payloads it completed.
func work(t *testing.T, b *running, fail map[string]error, ready func(done map[string]int) bool) map[string]int {
	t.Helper()
	var mu sync.Mutex
	done := map[string]int{}
	s := asynq.NewServer(option(b), asynq.Config{
		Concurrency:       4,
		Queues:            map[string]int{"q": 1},
		TaskCheckInterval: 10 * time.Millisecond,
		ShutdownTimeout:   time.Second,
		LogLevel:          asynq.FatalLevel,
		RetryDelayFunc:    func(int, error, *asynq.Task) time.Duration { return time.Hour },

		DelayedTaskCheckInterval: 50 * time.Millisecond,
	})
	err := s.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		mu.Lock()
		defer mu.Unlock()
		if err := fail[string(task.Payload())]; err != nil {
			return err
		}
		done[string(task.Payload())]++
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the asynq server has done its work", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ready(done)
	})
	s.Shutdown()
	return done
}

// counts returns how many tasks of queue q are in each state.
func counts(t *testing.T, b *running) string {
	t.Helper()
	i := asynq.NewInspector(option(b))
	defer func() { _ = i.Close() }()
	q, err := i.GetQueueInfo("q")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("pending %d active %d scheduled %d retry %d archived %d", q.Pending, q.Active, q.Scheduled, q.Retry, q.Archived)
}

// A real asynq queue is the same after a clean stop and a start: pending, scheduled, retried and
// archived tasks are there, task IDs still conflict, and work goes on until all is done once.
func TestAsynqQueueSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir})
	c := asynq.NewClient(option(b))
	enqueue := func(payload string, o ...asynq.Option) error {
		_, err := c.Enqueue(asynq.NewTask("kind", []byte(payload)), append(o, asynq.Queue("q"), asynq.TaskID(payload))...)
		return err
	}
	for payload, o := range map[string][]asynq.Option{"again": nil, "dead": nil, "fine": nil} {
		if err := enqueue(payload, o...); err != nil {
			t.Fatal(err)
		}
	}
	failures := map[string]error{"again": errors.New("later"), "dead": asynq.SkipRetry}
	work(t, b, failures, func(done map[string]int) bool {
		return done["fine"] == 1 && counts(t, b) == "pending 0 active 0 scheduled 0 retry 1 archived 1"
	})
	const pending = 50
	for i := range pending {
		if err := enqueue(fmt.Sprintf("pending %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(enqueue("soon", asynq.ProcessIn(2*time.Second)), enqueue("next week", asynq.ProcessIn(7*24*time.Hour))); err != nil {
		t.Fatal(err)
	}
	before := counts(t, b)
	if want := "pending 50 active 0 scheduled 2 retry 1 archived 1"; before != want {
		t.Fatalf("before the stop: %s, want %s", before, want)
	}
	_ = c.Close()
	b.stop(t)

	b = start(t, embedded.Options{Dir: dir})
	if after := counts(t, b); after != before {
		t.Errorf("after the start: %s, before the stop: %s", after, before)
	}
	c = asynq.NewClient(option(b))
	defer func() { _ = c.Close() }()
	if err := enqueue("pending 7"); !errors.Is(err, asynq.ErrTaskIDConflict) {
		t.Errorf("a task ID that exists: %v", err)
	}
	inspector := asynq.NewInspector(option(b))
	defer func() { _ = inspector.Close() }()
	if info, err := inspector.GetTaskInfo("q", "again"); err != nil || info.LastErr != "later" || info.Retried != 1 {
		t.Errorf("the retried task: %+v, %v", info, err)
	}
	if err := errors.Join(inspector.RunTask("q", "again"), inspector.RunTask("q", "dead")); err != nil {
		t.Error(err)
	}
	done := work(t, b, nil, func(done map[string]int) bool { return len(done) == pending+3 })
	for payload, n := range done {
		if n != 1 {
			t.Errorf("%s ran %d times", payload, n)
		}
	}
	if after := counts(t, b); after != "pending 0 active 0 scheduled 1 retry 0 archived 0" {
		t.Errorf("at the end: %s", after)
	}
}

// BenchmarkSnapshot says how long commands wait for a snapshot of 20,000 waiting tasks, and how
// long the whole write takes.
func BenchmarkSnapshot(b *testing.B) {
	broker, err := embedded.New(embedded.Options{Dir: b.TempDir(), SnapshotEvery: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- broker.Run(ctx) }()
	<-broker.Ready()
	c := asynq.NewClient(asynq.RedisClientOpt{Addr: broker.Address(), Password: broker.Password()})
	payload := make([]byte, 100)
	for range 20_000 {
		if _, err := c.Enqueue(asynq.NewTask("kind", payload), asynq.Queue("q")); err != nil {
			b.Fatal(err)
		}
	}
	_ = c.Close()
	var held time.Duration
	var size int
	for b.Loop() {
		body, h, err := broker.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		held += h
		size = len(body)
	}
	b.ReportMetric(float64(held.Milliseconds())/float64(b.N), "ms-held/op")
	b.ReportMetric(float64(size), "bytes")
	begun := time.Now()
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(begun).Milliseconds()), "ms-stop")
}
