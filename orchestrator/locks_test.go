package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Tasks with the same lock key never run at once, in two queues of one plugin and on two managers; each ends, by a run of its
// own or with the result of one that it joined, and a clean stop leaves no lock behind.
func TestLocksNeverOverlap(t *testing.T) {
	t.Parallel()
	onLockStores(t, func(t *testing.T, r *lockRig) {
		const first, second = "max_workers: 2, slots: 4", "max_workers: 1, slots: 4, lock_policy: return, retry_backoff: 1s"
		managers := []*manager{r.manager("", first, second).start(), r.manager("", first, second).start()}
		var ids []task.ID
		for i := range 24 {
			lock := fmt.Sprint("lock ", i%3)
			ids = append(ids, r.submit("first", lock, map[string]any{"do": "sleep", "ms": 100, "value": i}))
			if i%4 == 0 {
				ids = append(ids, r.submit("second", lock, map[string]any{"do": "sleep", "ms": 100, "value": -i}))
			}
		}
		joined := 0
		for _, e := range r.ended(ids...) {
			if e.State != task.Completed || e.Counters != (task.Counters{}) {
				t.Errorf("%s: %s, %+v, %v", e.ID, e.State, e.Counters, e.Fault)
			}
			if e.Attempts == 0 {
				joined++
			}
		}
		runs := r.runs()
		if len(runs) != len(ids)-joined || joined == 0 {
			t.Errorf("%d tasks, of which %d joined another, and %d runs", len(ids), joined, len(runs))
		}
		r.wantNoOverlap()
		for _, m := range managers {
			m.stop()
		}
		r.wantNoLocks()
	})
}

// A task whose lock another holds waits without a process and is shown as held. With join it ends with the holder's result;
// with return it comes back later and runs; with skip it ends at once with null, and its record says why; and it can be cancelled.
func TestLockPolicies(t *testing.T) {
	t.Parallel()
	onLockStores(t, func(t *testing.T, r *lockRig) {
		m := r.manager("", "max_workers: 2", "max_workers: 1, lock_policy: return, retry_backoff: 1s").start()
		holder := r.submit("first", "x", map[string]any{"do": "sleep", "ms": 3000, "value": "holder"})
		r.began(holder, 1)
		joins := r.submit("first", "x", map[string]any{"do": "return", "value": "joins"})
		returns := r.submit("second", "x", map[string]any{"do": "return", "value": "returns"})
		gone := r.submit("first", "x", map[string]any{"do": "return", "value": "gone"})
		r.waits(m, joins)
		r.waits(m, gone)
		if state, err := m.connect(t).Cancel(t.Context(), gone); err != nil {
			t.Errorf("cancel: %s, %v", state, err)
		}
		if e := r.ended(gone)[0]; e.State != task.Cancelled || e.Attempts != 0 {
			t.Errorf("the cancelled one: %s after %d runs", e.State, e.Attempts)
		}
		free := r.submit("first", "", map[string]any{"do": "return", "value": "free"})
		if e := r.ended(free)[0]; e.State != task.Completed || r.runs()[0].over {
			t.Errorf("one without a lock: %s; it should not have waited", e.State)
		}
		ended := r.ended(holder, joins, returns)
		for i, want := range []struct {
			result   string
			attempts int
		}{{`"holder"`, 1}, {`"holder"`, 0}, {`"returns"`, 1}} {
			if e := ended[i]; e.State != task.Completed || string(e.Result) != want.result || e.Attempts != want.attempts || e.Counters != (task.Counters{}) {
				t.Errorf("%s: %s with %s, %d runs, %+v; want %+v", e.ID, e.State, e.Result, e.Attempts, e.Counters, want)
			}
		}
		r.wantNoOverlap()
		m.stop()
		r.wantNoLocks()

		m = r.manager("", "", "lock_policy: skip").start()
		holder = r.submit("first", "x", map[string]any{"do": "sleep", "ms": 2000, "value": "holder"})
		r.began(holder, 1)
		skips := r.submit("second", "x", map[string]any{"do": "return", "value": "skips"})
		e := r.ended(skips)[0]
		if e.State != task.Completed || string(e.Result) != "null" || e.Attempts != 0 || e.Fault == nil || e.Fault.Kind != fault.Skipped {
			t.Errorf("the skipped one: %s with %s, %d runs, %v", e.State, e.Result, e.Attempts, e.Fault)
		}
		r.ended(holder)
		m.stop()
		r.wantNoLocks()
	})
}

// With the embedded broker locks lie in it: a task joins another and ends with its result, and nothing is said of a store that is away.
func TestLocksInEmbeddedBroker(t *testing.T) {
	t.Parallel()
	m := setUp(t, "{embedded: true}", "", "max_workers: 2").start()
	c := m.connect(t)
	var ids []task.ID
	for i, order := range []map[string]any{
		{"do": "sleep", "ms": 1500, "value": "holder", "lock": "x"}, {"do": "return", "value": "joins", "lock": "x"},
	} {
		s, err := c.Submit(t.Context(), "misbehave", order)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
		eventually(t, "it has begun, or waits", func() error {
			got, err := c.Get(t.Context(), s.ID)
			if want := []task.State{task.Running, task.Held}[i]; err == nil && got.State != want {
				err = fmt.Errorf("it is %s, want %s", got.State, want)
			}
			return err
		})
	}
	ended, err := client.WaitAll(t.Context(), c, ids...)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range ended {
		if e.State != task.Completed || string(e.Result) != `"holder"` || e.Attempts != oneIf(i == 0) {
			t.Errorf("%s: %s with %s after %d runs", e.ID, e.State, e.Result, e.Attempts)
		}
	}
	m.stop()
	if strings.Contains(m.output.String(), "locks cannot be had") {
		t.Error("the store of locks did not answer")
	}
}
