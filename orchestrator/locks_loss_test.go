package orchestrator_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/task"
)

// beat is how often locks are renewed, killGrace what a run that has lost its lock gets to end, and slack that of a busy machine.
const (
	lockBeat      = 2 * time.Second
	lockKillGrace = time.Second
	lockSlack     = 5 * time.Second
)

// A process that is killed while a task in it has a lock gives the lock up: the task and the one that waits for it both end, one
// after the other.
func TestLockOfKilledProcess(t *testing.T) {
	t.Parallel()
	onLockStores(t, func(t *testing.T, r *lockRig) {
		m := r.manager("", "max_workers: 2, slots: 1", "").start()
		holder := r.submit("first", "x", map[string]any{"do": "sleep", "ms": 60000, "times": 1, "value": "holder"})
		run := r.began(holder, 1)
		joins := r.submit("second", "x", map[string]any{"do": "return", "value": "joins"})
		r.waits(m, joins)
		kill(t, run.pid)
		for i, e := range r.ended(holder, joins) {
			if e.State != task.Completed || e.Counters != (task.Counters{Kills: oneIf(i == 0)}) {
				t.Errorf("%s: %s, %+v, %v", e.ID, e.State, e.Counters, e.Fault)
			}
		}
		r.wantNoOverlap()
		m.stop()
		r.wantNoLocks()
	})
}

// The lock of a manager that was killed ends by itself, in time for the task's next run on another manager.
func TestLockOfKilledManager(t *testing.T) {
	t.Parallel()
	onLockStores(t, func(t *testing.T, r *lockRig) {
		first := r.manager("", "", "").start()
		holder := r.submit("first", "x", map[string]any{"do": "sleep", "ms": 60000, "times": 1, "value": "holder"})
		r.began(holder, 1)
		second := r.manager("", "", "").start()
		first.signal(syscall.SIGKILL)
		first.wait()
		died := time.Now()
		joins := r.submit("second", "x", map[string]any{"do": "return", "value": "joins"})
		for i, e := range r.ended(holder, joins) {
			if e.State != task.Completed || e.Counters != (task.Counters{Losses: oneIf(i == 0)}) {
				t.Errorf("%s: %s, %+v, %v", e.ID, e.State, e.Counters, e.Fault)
			}
			if took := e.Ended.Sub(died); took > 15*time.Second+lockSlack {
				t.Errorf("%s ended %s after the manager's death", e.ID, took)
			}
		}
		r.wantNoOverlap()
		second.stop()
		r.wantNoLocks()
	})
}

// A lock that is gone from its store is noticed, and its run is gone before another can have the lock, even when it does not
// listen and kill_grace is long. That costs the task, and what else was in its process, an interruption and nothing more.
func TestLockGone(t *testing.T) {
	t.Parallel()
	onLockStores(t, func(t *testing.T, r *lockRig) {
		m := r.manager("", "max_workers: 1, slots: 2, kill_grace: 60s", "").start()
		holder := r.submit("first", "x", map[string]any{"do": "ignore-cancel", "ms": 600000, "times": 1, "value": "holder"})
		other := r.submit("first", "", map[string]any{"do": "sleep", "ms": 600000, "times": 1, "value": "other"})
		run := r.began(holder, 1)
		r.began(other, 1)
		var joins task.ID
		if r.memcached != nil { // which gives no lock for a while when it has lost them all
			joins = r.submit("second", "x", map[string]any{"do": "return", "value": "joins"})
			r.waits(m, joins)
		}
		lost := time.Now()
		r.loseLocks()
		eventually(t, "the process is gone", func() error {
			if err := syscall.Kill(run.pid, 0); err == nil {
				return fmt.Errorf("process %d lives", run.pid)
			}
			return nil
		})
		if took := time.Since(lost); took > lockBeat+lockKillGrace+lockSlack {
			t.Errorf("the process was gone after %s", took)
		}
		for _, e := range r.ended(holder, other) {
			if e.State != task.Completed || e.Counters != (task.Counters{Interruptions: 1}) || len(e.History) != 1 || e.History[0].Exit != "lock-lost" {
				t.Errorf("%s: %s, %+v, %+v, %v", e.ID, e.State, e.Counters, e.History, e.Fault)
			}
		}
		if r.memcached != nil {
			if e := r.ended(joins)[0]; e.State != task.Completed || e.Counters != (task.Counters{}) {
				t.Errorf("%s: %s, %+v, %v", e.ID, e.State, e.Counters, e.Fault)
			}
		}
		if n := strings.Count(m.output.String(), "a lock is lost"); n != 1 {
			t.Errorf("%d lines about a lost lock, want one", n)
		}
		r.wantNoOverlap()
		m.stop()
		r.wantNoLocks()
	})
}

// loseLocks makes the store forget every lock.
func (r *lockRig) loseLocks() {
	r.t.Helper()
	if r.memcached != nil {
		r.ask("flush_all\r\n", "OK")
		return
	}
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr()})
	defer func() { _ = rdb.Close() }()
	if err := rdb.Del(r.t.Context(), r.locks()...).Err(); err != nil {
		r.t.Fatal(err)
	}
}

// While memcached is away, killed or frozen, tasks wait for their locks or run without, as lock_missing says; a run whose lock
// cannot be renewed is interrupted in time, or goes on; the log says so once; and when it is back, all goes on by itself.
func TestMemcachedAway(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "frozen"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newLockRig(t, true)
			m := r.manager("", "max_workers: 4", "max_workers: 4, lock_missing: run").start()
			stops := r.submit("first", "a", map[string]any{"do": "sleep", "ms": 600000, "times": 1, "value": "stops"})
			goesOn := r.submit("second", "b", map[string]any{"do": "sleep", "ms": 14000, "value": "goes on"})
			r.began(stops, 1)
			r.began(goesOn, 1)
			lost := time.Now()
			if how == "killed" {
				r.memcached.Kill()
			} else {
				r.memcached.Freeze()
			}
			waits := r.submit("first", "c", map[string]any{"do": "return", "value": "waits"})
			runs := r.submit("second", "d", map[string]any{"do": "return", "value": "runs"})
			if e := r.ended(runs)[0]; e.State != task.Completed || time.Since(lost) > 3*time.Second+lockSlack {
				t.Errorf("with lock_missing=run a task is %s after %s", e.State, time.Since(lost))
			}
			r.waits(m, waits)
			eventually(t, "the run with lock_missing=wait is interrupted", func() error {
				got, err := r.tasks.Get(t.Context(), stops)
				if err == nil && got.Counters.Interruptions != 1 {
					err = fmt.Errorf("%+v", got.Counters)
				}
				return err
			})
			if took := time.Since(lost); took > 8*time.Second+lockSlack {
				t.Errorf("it was interrupted after %s", took)
			}
			if e := r.ended(goesOn)[0]; e.State != task.Completed || e.Counters != (task.Counters{}) {
				t.Errorf("with lock_missing=run: %s, %+v", e.State, e.Counters)
			}
			r.waits(m, waits)
			if n := strings.Count(m.output.String(), "locks cannot be had now"); n != 1 {
				t.Errorf("%d lines about the store, want one", n)
			}
			if how == "killed" {
				r.memcached.Start()
			} else {
				r.memcached.Thaw()
			}
			for i, e := range r.ended(stops, waits) {
				if e.State != task.Completed || e.Counters != (task.Counters{Interruptions: oneIf(i == 0)}) {
					t.Errorf("%s: %s, %+v", e.ID, e.State, e.Counters)
				}
			}
			back := time.Now()
			r.wantNoOverlap()
			m.stop()
			if how == "killed" {
				r.wantNoLocks()
				return
			}
			// What was asked of the server while it stood still, and given up, it does when it wakes: a lock that nobody renews ends
			// with its lease, eight seconds and up to two of the server's own.
			eventually(t, "the last lock has ended by itself", func() error {
				if left := r.locks(); len(left) > 0 {
					return fmt.Errorf("%v", left)
				}
				return nil
			})
			if took := time.Since(back); took > 10*time.Second+lockSlack {
				t.Errorf("the last lock ended after %s", took)
			}
		})
	}
}
