package orchestrator_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/task"
)

// stopSlack is that of a busy machine, beyond the two seconds that are promised.
const stopSlack = 2 * time.Second

// A stop while tasks wait for a lock puts them back at the head of their queue in their old order, at no cost, and leaves no
// lock; after a restart all end.
func TestStopWhileLocksAreAwaited(t *testing.T) {
	t.Parallel()
	onLockStores(t, func(t *testing.T, r *lockRig) {
		m := r.manager("drain_timeout: 1s", "max_workers: 1, slots: 2, buffer: 4", "").start()
		holder := r.submit("first", "x", map[string]any{"do": "sleep", "ms": 600000, "times": 1, "value": "holder"})
		r.began(holder, 1)
		ids := []task.ID{holder}
		for i := range 5 {
			ids = append(ids, r.submit("first", "x", map[string]any{"do": "return", "value": i}))
			r.waits(m, ids[len(ids)-1])
		}
		m.stop()
		rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr()})
		defer func() { _ = rdb.Close() }()
		keys := task.KeysOf("first")
		pending := rdb.LRange(t.Context(), keys.Pending(), 0, -1).Val()
		slices.Reverse(pending) // the head of the queue is the list's right end
		var want []string
		for _, id := range ids {
			want = append(want, id.Key)
		}
		if active := rdb.LLen(t.Context(), keys.Active()).Val(); active != 0 || !slices.Equal(pending, want) {
			t.Errorf("%d are active, and in the queue are\n%v, want\n%v", active, pending, want)
		}
		for i, id := range ids {
			wantCounters(t, r.tasks, id, task.Counters{Interruptions: oneIf(i == 0)})
		}
		r.wantNoLocks()
		m.start()
		for _, e := range r.ended(ids...) {
			if e.State != task.Completed {
				t.Errorf("%s: %s, %v", e.ID, e.State, e.Fault)
			}
		}
		r.wantNoOverlap()
		m.stop()
		r.wantNoLocks()
	})
}

// A stop while memcached is gone or frozen ends within drain_timeout and two seconds, and every task is put back.
func TestStopWhileMemcachedIsAway(t *testing.T) {
	t.Parallel()
	const drain = time.Second
	for _, how := range []string{"killed", "frozen", "frozen for long"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newLockRig(t, true)
			m := r.manager("drain_timeout: 1s", "max_workers: 1, slots: 4", "").start()
			var ids []task.ID
			for i := range 4 {
				ids = append(ids, r.submit("first", fmt.Sprint("lock ", i), map[string]any{"do": "ignore-cancel", "ms": 600000}))
				r.began(ids[i], 1)
			}
			joins := r.submit("second", "lock 0", map[string]any{"do": "return"})
			r.waits(m, joins)
			if how == "killed" {
				r.memcached.Kill()
			} else {
				r.memcached.Freeze()
			}
			if how == "frozen for long" {
				eventually(t, "that is noticed", func() error {
					if !strings.Contains(m.output.String(), "locks cannot be had now") {
						return fmt.Errorf("nothing is said of it")
					}
					return nil
				})
			}
			late := r.submit("second", "late", map[string]any{"do": "return"})
			r.waits(m, late)
			began := time.Now()
			m.signal(syscall.SIGTERM)
			code := m.wait()
			took := time.Since(began)
			t.Logf("the stop took %s", took)
			if code != 0 || took > drain+2*time.Second+stopSlack {
				t.Errorf("the stop took %s and ended with %d:\n%s", took, code, m.output)
			}
			for i, id := range append(ids, joins, late) {
				wantCounters(t, r.tasks, id, task.Counters{Interruptions: oneIf(i < len(ids))})
			}
		})
	}
}

// A stop while the Redis that has the queue and the locks is frozen ends in the same time, with a report of what is left.
func TestStopWhileRedisWithLocksIsFrozen(t *testing.T) {
	t.Parallel()
	const drain = time.Second
	r := newLockRig(t, false)
	m := r.manager("drain_timeout: 1s", "max_workers: 1, slots: 4", "").start()
	for i := range 4 {
		r.began(r.submit("first", fmt.Sprint("lock ", i), map[string]any{"do": "ignore-cancel", "ms": 600000}), 1)
	}
	r.waits(m, r.submit("second", "lock 0", map[string]any{"do": "return"}))
	r.redis.Freeze()
	defer r.redis.Thaw()
	began := time.Now()
	m.signal(syscall.SIGTERM)
	code := m.wait()
	took := time.Since(began)
	t.Logf("the stop took %s", took)
	if code != 1 || took > drain+2*time.Second+stopSlack || !strings.Contains(m.output.String(), "left=5") {
		t.Errorf("the stop took %s and ended with %d:\n%s", took, code, m.output)
	}
}
