package hook_test

import (
	"context"
	"encoding/json"
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Deaths are handed on the oldest first, each once while all goes well; one that cannot be handed on now stays and keeps those for other
// queues from nothing; one that never can be is given up.
func TestDeathsAreHandedOn(t *testing.T) {
	t.Parallel()
	options, err := redis.ParseURL(testenv.StartRedis(t, testenv.RedisOptions{}).URL())
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	list := task.KeysOf("q").Deaths()
	push := func(queue string, n int) {
		entry, err := json.Marshal(job.Hook{Queue: queue, Payload: fmt.Appendf(nil, "%d", n)})
		if err != nil {
			t.Fatal(err)
		}
		if err := rdb.LPush(t.Context(), list, entry).Err(); err != nil {
			t.Fatal(err)
		}
	}
	push("away", 0)
	push("picky", 1)
	const letters = 250 // more than one round
	for i := range letters {
		push("letters", 2+i)
	}
	if err := rdb.LPush(t.Context(), list, "not JSON").Err(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	back := false
	got := map[string][]string{}
	relay := hook.New(hook.Deps{
		Redis: rdb, Queues: func() []string { return []string{"q", "empty"} }, Log: slog.New(slog.DiscardHandler),
		Submit: func(_ context.Context, queue string, payload []byte) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case queue == "away" && !back:
				return client.ErrUnknownQueue
			case queue == "picky":
				return fmt.Errorf("%w: no", client.ErrInvalidPayload)
			}
			got[queue] = append(got[queue], string(payload))
			return nil
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = relay.Run(ctx) })
	defer running.Wait()
	defer cancel()
	left := func(want int64) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for {
			n, err := rdb.LLen(t.Context(), list).Result()
			if err == nil && n == want {
				return
			}
			select {
			case <-deadline:
				t.Fatalf("%d deaths are left, want %d", n, want)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	left(1)
	mu.Lock()
	var want []string
	for i := range letters {
		want = append(want, fmt.Sprint(2+i))
	}
	if !slices.Equal(got["letters"], want) {
		t.Errorf("%d deaths came, want %d, the oldest first and each once", len(got["letters"]), letters)
	}
	back = true
	mu.Unlock()
	left(0)
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got["away"], []string{"0"}) {
		t.Errorf("once its queue is there %v came", got["away"])
	}
}
