package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/orchestrator/internal/hook"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LateDials()) }

// Deaths wait while their queue does not take them, go to where on_dead points when they are told, the oldest first and each once, and
// are dropped when it is switched off.
func TestDeathsAreHandedOn(t *testing.T) {
	t.Parallel()
	options, err := redis.ParseURL(testenv.StartRedis(t, testenv.RedisOptions{}).URL())
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	list := task.KeysOf("q").Deaths()
	push := func(n int) {
		entry, err := json.Marshal(job.Hook{Queue: "away", Payload: fmt.Appendf(nil, "%d", n)})
		if err != nil {
			t.Fatal(err)
		}
		if err := rdb.LPush(t.Context(), list, entry).Err(); err != nil {
			t.Fatal(err)
		}
	}
	const letters = 250 // more than one round
	for i := range letters {
		push(i)
	}
	if err := rdb.LPush(t.Context(), list, "not JSON").Err(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	to := "away"
	var got []string
	relay := hook.New(hook.Deps{
		Redis: rdb, Queues: func() []string { return []string{"q", "empty"} }, Log: slog.New(slog.DiscardHandler),
		OnDead: func(string) string {
			mu.Lock()
			defer mu.Unlock()
			return to
		},
		Submit: func(_ context.Context, queue string, payload []byte) error {
			mu.Lock()
			defer mu.Unlock()
			switch queue {
			case "away":
				return client.ErrUnknownQueue
			case "picky":
				return fmt.Errorf("%w: no", client.ErrInvalidPayload)
			}
			got = append(got, string(payload))
			return nil
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = relay.Run(ctx) })
	defer running.Wait()
	defer cancel()
	until := func(what string, is func() bool) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for !is() {
			select {
			case <-deadline:
				t.Fatalf("it never happened: %s", what)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	point := func(queue string) {
		mu.Lock()
		defer mu.Unlock()
		to = queue
	}
	left := func(want int64) func() bool {
		return func() bool { n, err := rdb.LLen(t.Context(), list).Result(); return err == nil && n == want }
	}
	until("it says that the queue is not there", func() bool { return errors.Is(relay.Problem("q"), client.ErrUnknownQueue) })
	if !left(letters + 1)() {
		t.Error("deaths got lost while their queue was not there")
	}
	point("letters")
	until("all are told", left(0))
	mu.Lock()
	var want []string
	for i := range letters {
		want = append(want, fmt.Sprint(i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d deaths came, want %d, the oldest first and each once", len(got), letters)
	}
	mu.Unlock()
	point("picky")
	push(0)
	until("it says that the queue refuses it", func() bool { return errors.Is(relay.Problem("q"), client.ErrInvalidPayload) })
	if !left(1)() {
		t.Error("a death that is refused got lost")
	}
	point("")
	until("what waits is dropped", left(0))
	until("and nothing is wrong", func() bool { return relay.Problem("q") == nil })
}
