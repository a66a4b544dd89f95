package direct_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/clienttest/standin"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// eventually polls until ok says so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("it never happened that %s", what)
		case <-tick.C:
		}
	}
}

// Tasks end before, during and after a subscription while the connections for events are killed again and again: each
// end comes exactly once, and nobody hangs.
func TestChaosOfConnections(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := connect(t, server.URL())
	standin.Start(t, rdb, "q", standin.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	killer.Go(func() {
		tick := time.NewTicker(15 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = rdb.ClientKillByFilter(ctx, "TYPE", "pubsub").Err() // one kill more or less
			}
		}
	})
	follow(t, server, 4, 25)
	cancel()
	killer.Wait()
}

// The same while Redis itself is killed and started again.
func TestChaosOfRedis(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{AppendOnly: true})
	standin.Start(t, connect(t, server.URL()), "q", standin.Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		follow(t, server, 3, 12)
	}()
	for {
		pause := time.NewTimer(time.Duration(100+rand.IntN(300)) * time.Millisecond)
		select {
		case <-done:
			pause.Stop()
			return
		case <-pause.C:
			server.Kill()
			server.Start()
		}
	}
}

// follow lets some clients submit random tasks and wait for them in lists, over and over.
func follow(t *testing.T, server *testenv.Redis, clients, rounds int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*within)
	defer cancel()
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() {
			c, err := direct.Open(server.URL(), quiet())
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer func() { _ = c.Close() }()
			for round := range rounds {
				followRound(ctx, t, c, fmt.Sprintf("%d.%d", n, round))
			}
		})
	}
	wg.Wait()
}

func followRound(ctx context.Context, t *testing.T, c *direct.Client, name string) {
	t.Helper()
	var ids []task.ID
	for i := range 1 + rand.IntN(8) {
		do, ms := "return", 0
		if rand.IntN(2) == 0 {
			do, ms = "sleep", rand.IntN(60)
		}
		for {
			s, err := c.Submit(ctx, "q", map[string]any{"do": do, "ms": ms, "value": fmt.Sprintf("%s.%d", name, i)})
			if err == nil {
				ids = append(ids, s.ID)
				break
			}
			if !errors.Is(err, client.ErrUnavailable) {
				t.Errorf("submit: %v", err)
				return
			}
		}
	}
	seen := map[task.ID]int{}
	for len(seen) < len(ids) {
		left := ids[:0:0]
		for _, id := range ids {
			if seen[id] == 0 {
				left = append(left, id)
			}
		}
		for u, err := range c.Subscribe(ctx, left) {
			if errors.Is(err, client.ErrUnavailable) {
				break // away from the beginning: the caller tries again
			}
			if err != nil {
				t.Errorf("round %s: %d of %d came: %v", name, len(seen), len(ids), err)
				return
			}
			if u.Ended == nil || u.Ended.State != task.Completed {
				t.Errorf("round %s: update %+v, want a completed task", name, u)
			}
			if seen[u.ID]++; seen[u.ID] > 1 {
				t.Errorf("round %s: task %s ended %d times", name, u.ID, seen[u.ID])
			}
		}
	}
}

// While Redis is down every call says so soon; while it hangs none outlasts its context; and Close returns.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	for _, frozen := range []bool{false, true} {
		t.Run(fmt.Sprintf("frozen=%t", frozen), func(t *testing.T) {
			t.Parallel()
			server := testenv.StartRedis(t, testenv.RedisOptions{})
			standin.Start(t, connect(t, server.URL()), "q", standin.Options{Idle: true})
			for _, warm := range []bool{false, true} {
				c, err := direct.Open(server.URL(), quiet())
				if err != nil {
					t.Fatalf("open: %v", err)
				}
				if warm {
					if _, err := c.Get(t.Context(), task.RandomID("q")); !errors.Is(err, client.ErrUnknownTask) {
						t.Fatalf("get: %v", err)
					}
				}
				if frozen {
					server.Freeze()
				} else {
					server.Stop()
				}
				callAll(t, c, frozen)
				begun := time.Now()
				if err := c.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("close took %s", took)
				}
				if frozen {
					server.Thaw()
				} else {
					server.Start()
				}
			}
		})
	}
}

func callAll(t *testing.T, c *direct.Client, frozen bool) {
	t.Helper()
	id := task.RandomID("q")
	calls := map[string]func(context.Context) error{
		"submit": func(ctx context.Context) error {
			_, err := c.Submit(ctx, "q", map[string]any{"do": "return"})
			return err
		},
		"get":    func(ctx context.Context) error { _, err := c.Get(ctx, id); return err },
		"cancel": func(ctx context.Context) error { _, err := c.Cancel(ctx, id); return err },
		"wait":   func(ctx context.Context) error { _, err := client.Wait(ctx, c, id); return err },
	}
	var wg sync.WaitGroup
	for name, call := range calls {
		wg.Go(func() {
			limit := within
			if frozen {
				limit = 200 * time.Millisecond
			}
			// Only a cancel, no deadline that the redis client could see.
			ctx, cancel := context.WithCancel(t.Context())
			timer := time.AfterFunc(limit, cancel)
			defer timer.Stop()
			begun := time.Now()
			err := call(ctx)
			if frozen && (!errors.Is(err, context.Canceled) || time.Since(begun) > 2*time.Second) {
				t.Errorf("%s gave %v after %s, want its context's end", name, err, time.Since(begun))
			}
			if !frozen && !errors.Is(err, client.ErrUnavailable) {
				t.Errorf("%s gave %v, want ErrUnavailable", name, err)
			}
		})
	}
	wg.Wait()
}

// A client made from a redis client of the caller leaves it open.
func TestNewLeavesRedisOpen(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := connect(t, server.URL())
	c := direct.New(rdb, quiet())
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the caller's redis client is closed: %v", err)
	}
	if _, err := direct.Open("nonsense://:secret@host", quiet()); err == nil || errors.Is(err, redis.ErrClosed) {
		t.Errorf("open gave %v", err)
	}
}
