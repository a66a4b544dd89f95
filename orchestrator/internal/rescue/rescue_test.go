package rescue_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/rescue"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

const queue = "q"

// rig is a Redis in which tests lay out the leases of managers that live or died.
type rig struct {
	t    *testing.T
	rdb  *redis.Client
	keys task.Keys
}

// onBoth runs a test on redis-server and on the broker that is embedded.
func onBoth(t *testing.T, test func(r rig)) {
	t.Helper()
	addresses := map[string]func(t *testing.T) string{
		"redis":    func(t *testing.T) string { return testenv.StartRedis(t, testenv.RedisOptions{}).Addr() },
		"embedded": func(t *testing.T) string { return miniredis.RunT(t).Addr() },
	}
	for name, start := range addresses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClient(&redis.Options{Addr: start(t)})
			t.Cleanup(func() { _ = rdb.Close() })
			test(rig{t: t, rdb: rdb, keys: task.KeysOf(queue)})
		})
	}
}

// take lays out an active task as a manager does that takes it; a lease of 0 gives it none.
func (r rig) take(key string, lease int64) {
	r.t.Helper()
	ctx := r.t.Context()
	_, err := r.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, r.keys.Task(key), "msg", "m", "state", "active", task.FieldHolder, "token")
		p.LPush(ctx, r.keys.Active(), key)
		if lease > 0 {
			p.ZAdd(ctx, r.keys.Lease(), redis.Z{Score: float64(lease), Member: key})
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// watch runs a rescue with these times until the test ends.
func (r rig) watch(after, every time.Duration) {
	w := rescue.New(rescue.Deps{Redis: r.rdb, Queues: func() []string { return []string{queue} }, Log: slog.New(slog.DiscardHandler)})
	w.Hasten(after, every)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	r.t.Cleanup(func() { cancel(); running.Wait() })
}

func (r rig) pending() []string {
	r.t.Helper()
	keys, err := r.rdb.LRange(r.t.Context(), r.keys.Pending(), 0, -1).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

func (r rig) eventuallyPending(want ...string) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !slices.Equal(r.pending(), want) {
		if time.Now().After(deadline) {
			r.t.Fatalf("pending are %v, want %v", r.pending(), want)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // between two looks
	}
}

// A task whose lease stands still is put back at the head, with one loss and nothing else counted and its token gone, and so
// is one that never had a lease; a task whose lease moves is left alone.
func TestPutsBackWhatNobodyOwns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r rig) {
		r.take("dead", 1000)
		r.take("bare", 0)
		earlier, err := task.EncodeHistory([]task.Attempt{{Number: 1, End: task.EndFailed}})
		if err == nil {
			err = r.rdb.HSet(r.t.Context(), r.keys.Task("dead"), task.FieldHistory, earlier).Err()
		}
		if err != nil {
			r.t.Fatal(err)
		}
		r.take("living", 1000)
		if err := r.rdb.LPush(t.Context(), r.keys.Pending(), "waiting").Err(); err != nil {
			r.t.Fatal(err)
		}
		beating, stop := context.WithCancel(context.Background())
		var beats sync.WaitGroup
		beats.Go(func() {
			for i := int64(1001); beating.Err() == nil; i++ {
				r.rdb.ZAddXX(beating, r.keys.Lease(), redis.Z{Score: float64(i), Member: "living"})
				time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the beat
			}
		})
		defer beats.Wait()
		defer stop()
		r.watch(400*time.Millisecond, 50*time.Millisecond)
		r.eventuallyPending("bare", "dead", "waiting")

		if head := r.rdb.LIndex(r.t.Context(), r.keys.Pending(), 0).Val(); head != "waiting" {
			r.t.Errorf("the tail of the queue is %q: what was put back is not first in line", head)
		}
		for _, key := range []string{"bare", "dead"} {
			got := r.rdb.HGetAll(r.t.Context(), r.keys.Task(key)).Val()
			if got["state"] != "pending" || got[task.FieldLosses] != "1" || got[task.FieldHolder] != "" || got["pending_since"] == "" {
				r.t.Errorf("%s: %v", key, got)
			}
			if h, err := task.DecodeHistory([]byte(got[task.FieldHistory])); err != nil || len(h) == 0 || h[len(h)-1].End != task.EndLost || (key == "dead") != (len(h) == 2) {
				r.t.Errorf("%s: its history is %+v, %v", key, h, err)
			}
		}
		if active := r.rdb.LRange(r.t.Context(), r.keys.Active(), 0, -1).Val(); !slices.Equal(active, []string{"living"}) {
			r.t.Errorf("active are %v, want the living one", active)
		}
		if n := r.rdb.ZCard(r.t.Context(), r.keys.Lease()).Val(); n != 1 {
			r.t.Errorf("%d leases are left, want 1", n)
		}
	})
}

// A manager that is alone with its Redis puts everything back at its start, without waiting; one that is not touches nothing.
func TestFirst(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r rig) {
		for i := range 300 {
			r.take(fmt.Sprint("t", i), 5000)
		}
		shared := rescue.New(rescue.Deps{Redis: r.rdb, Queues: func() []string { return []string{queue} }, Log: slog.New(slog.DiscardHandler)})
		if err := shared.First(r.t.Context()); err != nil || len(r.pending()) != 0 {
			r.t.Fatalf("a manager that shares its Redis put back %d: %v", len(r.pending()), err)
		}
		alone := rescue.New(rescue.Deps{Redis: r.rdb, Queues: func() []string { return []string{queue} }, Alone: true, Log: slog.New(slog.DiscardHandler)})
		if err := alone.First(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
		if n := len(r.pending()); n != 300 {
			r.t.Errorf("%d were put back, want 300", n)
		}
	})
}

// Many managers watch the same dead one: each task is put back once.
func TestManyWatchers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r rig) {
		want := make([]string, 0, 200)
		for i := range 200 {
			key := fmt.Sprintf("t%03d", i)
			r.take(key, 1000)
			want = append(want, key)
		}
		for range 5 {
			r.watch(200*time.Millisecond, 20*time.Millisecond)
		}
		r.eventuallyPending(want...)
		for _, key := range want {
			if got := r.rdb.HGet(r.t.Context(), r.keys.Task(key), task.FieldLosses).Val(); got != "1" {
				r.t.Fatalf("%s has %q losses, want 1", key, got)
			}
		}
	})
}

// The times add up to the promise: a dead manager's tasks wait at most 15 seconds.
func TestBound(t *testing.T) {
	t.Parallel()
	if rescue.Bound >= 15*time.Second {
		t.Errorf("a rescue takes up to %s", rescue.Bound)
	}
}
