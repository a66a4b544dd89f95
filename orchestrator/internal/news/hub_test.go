package news_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/orchestrator/internal/news"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LateDials()) }

// newHub returns a hub that runs as long as the test, and the Redis behind it.
func newHub(t *testing.T) (*news.Hub, *testenv.Redis, *redis.Client) {
	t.Helper()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	h := news.New(rdb, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("run: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("run did not end")
		}
		_ = rdb.Close()
	})
	return h, server, rdb
}

func publish(t *testing.T, rdb *redis.Client, queue string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		data, err := task.EncodeEvents(&task.Event{ID: task.ID{Queue: queue, Key: key}, State: task.Completed, At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if err := rdb.Publish(t.Context(), task.KeysOf(queue).EventsChannel(), data).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func worker(queue, event string) *apiv1.WatchResponse {
	return &apiv1.WatchResponse{Happened: &apiv1.WatchResponse_Worker{Worker: &apiv1.WorkerEvent{Queue: queue, Event: event}}}
}

func queueEvent(queue, event string) *apiv1.WatchResponse {
	return &apiv1.WatchResponse{Happened: &apiv1.WatchResponse_Queue{Queue: &apiv1.QueueEvent{Queue: queue, Event: event}}}
}

// read returns the next n messages in short: what each is about.
func read(t *testing.T, f *news.Follower, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var all []string
	for len(all) < n {
		batch, err := f.Next(ctx)
		if err != nil {
			t.Fatalf("after %v: %v", all, err)
		}
		for _, m := range batch {
			switch x := m.GetHappened().(type) {
			case *apiv1.WatchResponse_Task:
				all = append(all, x.Task.GetId())
			case *apiv1.WatchResponse_Worker:
				all = append(all, x.Worker.GetQueue()+" worker "+x.Worker.GetEvent())
			case *apiv1.WatchResponse_Queue:
				all = append(all, x.Queue.GetQueue()+" "+x.Queue.GetEvent())
			case *apiv1.WatchResponse_Missed:
				all = append(all, fmt.Sprintf("missed %d", x.Missed))
			}
		}
	}
	return all
}

// Once Follow has returned, everything that happens comes: events of tasks of any queue from Redis, and what the manager tells.
func TestEverythingComes(t *testing.T) {
	t.Parallel()
	h, _, rdb := newHub(t)
	for range 5 { // each time a new connection
		f := h.Follow(t.Context(), news.Filter{})
		publish(t, rdb, "a", "1")
		publish(t, rdb, "b", "2")
		if got := fmt.Sprint(read(t, f, 2)); got != "[a:1 b:2]" {
			t.Errorf("got %s", got)
		}
		h.Tell(worker("a", "started"))
		h.Tell(queueEvent("b", "paused"))
		if got := fmt.Sprint(read(t, f, 2)); got != "[a worker started b paused]" {
			t.Errorf("got %s", got)
		}
		f.Close()
		eventually(t, "the connection is given up", func() bool {
			n, err := rdb.PubSubNumPat(t.Context()).Result()
			return err == nil && n == 0
		})
	}
}

// A follower gets what it asked for and nothing else.
func TestFilters(t *testing.T) {
	t.Parallel()
	h, _, rdb := newHub(t)
	all := map[string]*news.Follower{
		"[a:1 a:2 a worker ended a circuit-open  broker-away]": h.Follow(t.Context(), news.Filter{Queue: "a"}),
		"[a:2  broker-away]": h.Follow(t.Context(), news.Filter{Task: "a:2"}),
		"[a:1 a:2 ab:1 mark:1 a worker ended ab worker ended a circuit-open  broker-away  settings]": h.Follow(t.Context(), news.Filter{}),
	}
	publish(t, rdb, "a", "1", "2")
	publish(t, rdb, "ab", "1")
	everything := h.Follow(t.Context(), news.Filter{Queue: "mark"})
	defer everything.Close()
	publish(t, rdb, "mark", "1")
	read(t, everything, 1) // what was published before has been delivered by now
	for _, m := range []*apiv1.WatchResponse{
		worker("a", "ended"), worker("ab", "ended"), queueEvent("a", "circuit-open"), queueEvent("", "broker-away"), queueEvent("", "settings"),
	} {
		h.Tell(m)
	}
	for want, f := range all {
		if got := fmt.Sprint(read(t, f, 1)); got != want { // all are there already, and come together
			t.Errorf("%+v: got %s, want %s", f.Filter, got, want)
		}
		f.Close()
	}
}

// Who reads too slowly is told how much was missed, and gets the latest; the others are not held up.
func TestSlowFollower(t *testing.T) {
	t.Parallel()
	h, _, _ := newHub(t)
	f := h.Follow(t.Context(), news.Filter{})
	defer f.Close()
	const told = 10_000
	for i := range told {
		h.Tell(queueEvent(fmt.Sprint(i), "x"))
	}
	got := read(t, f, 1)
	if missed := told - (len(got) - 1); got[0] != fmt.Sprintf("missed %d", missed) || missed == 0 || got[len(got)-1] != fmt.Sprintf("%d x", told-1) || got[1] != fmt.Sprintf("%d x", missed) {
		t.Errorf("%d messages from %s, %s to %s", len(got), got[0], got[1], got[len(got)-1])
	}
	h.Tell(queueEvent("next", "x"))
	if got := read(t, f, 1); len(got) != 1 || got[0] != "next x" {
		t.Errorf("then %v", got)
	}
}

// While Redis is frozen Follow does not wait for it, what the manager tells still comes, and so do events once Redis is back,
// with a word about the gap.
func TestAway(t *testing.T) {
	t.Parallel()
	h, server, rdb := newHub(t)
	server.Freeze()
	began := time.Now()
	f := h.Follow(t.Context(), news.Filter{})
	defer f.Close()
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("Follow took %s", took)
	}
	h.Tell(worker("a", "ended"))
	if got := read(t, f, 1); got[0] != "a worker ended" {
		t.Errorf("got %v", got)
	}
	if got := read(t, f, 1); got[0] != " broker-away" {
		t.Errorf("got %v", got)
	}
	server.Thaw()
	if got := read(t, f, 1); got[0] != " broker-back" {
		t.Errorf("got %v", got)
	}
	publish(t, rdb, "a", "1")
	if got := read(t, f, 1); got[0] != "a:1" {
		t.Errorf("got %v", got)
	}
}

// Waiting for news ends with its context.
func TestNextEnds(t *testing.T) {
	t.Parallel()
	h, _, _ := newHub(t)
	f := h.Follow(t.Context(), news.Filter{})
	defer f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // between two looks at a real server
	}
}
