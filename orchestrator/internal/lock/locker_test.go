package lock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// A job without a lock key is handed on at once; one whose payload cannot be read is ended for good.
func TestNoLock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		free := job.New(task.ID{Queue: "feeds", Key: "a"}, "pull", []byte(`{}`))
		m.feeds.Offer(free)
		if !m.runs(free) || store.count() != 0 {
			t.Errorf("handed on at once: %v, after %d calls to the store", m.runs(free), store.count())
		}
		broken := job.New(task.ID{Queue: "feeds", Key: "b"}, "pull", []byte(`[`))
		m.feeds.Offer(broken)
		if o := m.outcome(broken); o.End != job.Faulted || !o.Fault.Permanent || o.Fault.Kind != fault.InvalidPayload {
			t.Errorf("a broken payload ends as %+v", o)
		}
		m.end()
	})
}

// A job is handed on with its lock, which is listed, renewed for as long as the job runs, and released at its end.
func TestHeld(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		j := newJob("feeds", "a", "x")
		m.feeds.Offer(j)
		after(10 * lock.DefaultLease)
		held := m.locker.Held()
		if !m.runs(j) || m.isLost(j) || store.taken() != 1 || len(held) != 1 {
			t.Fatalf("runs %v, lost %v, %d locks, held %+v", m.runs(j), m.isLost(j), store.taken(), held)
		}
		if h := held[0]; h.Key != `pull {"url":"x"}` || h.Queue != "feeds" || h.Task != j.ID || !h.Until.After(time.Now()) || h.Holder.Manager != "m1" {
			t.Errorf("listed as %+v", h)
		}
		m.finish(j)
		synctest.Wait()
		if store.taken() != 0 || len(m.locker.Held()) != 0 {
			t.Errorf("%d locks left after its end", store.taken())
		}
		m.end()
	})
}

// What happens to a job whose lock another task has is the queue's policy; no run is spent on it in any case.
func TestPolicies(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, _ *memory, e *ends) {
		first, second := newJob("feeds", "a", "x"), newJob("system", "b", "x")
		m.feeds.Offer(first)
		after(time.Second)

		m.set(func() { m.policy = settings.LockReturn })
		m.system.Offer(second)
		after(0)
		o := m.outcome(second)
		if o.End != job.Returned || o.Fault == nil || o.Fault.RetryAfter == nil || *o.Fault.RetryAfter < 5*time.Second || !strings.Contains(o.Fault.Message, "feeds:a") {
			t.Errorf("return: %+v %v", o, o.Fault)
		}

		m.set(func() { m.policy = settings.LockSkip })
		third := newJob("system", "c", "x")
		m.system.Offer(third)
		after(0)
		if o := m.outcome(third); o.End != job.Succeeded || string(o.Result) != "null" || o.Fault == nil || !strings.Contains(o.Fault.Message, "lock_policy is skip") {
			t.Errorf("skip: %+v %v", o, o.Fault)
		}

		m.set(func() { m.policy = settings.LockJoin })
		fourth := newJob("system", "d", "x")
		m.system.Offer(fourth)
		after(30 * time.Second)
		if w := m.locker.Waiting(); m.outcome(fourth).End != 0 || len(w) != 1 || w[0].Holder.Task != first.ID {
			t.Errorf("join: ended %v, waiting %+v", m.outcome(fourth), w)
		}
		m.finish(first)
		e.tell(&task.Task{ID: first.ID, State: task.Completed, Result: []byte(`{"n":1}`)})
		after(10 * time.Millisecond)
		if o := m.outcome(fourth); o.End != job.Succeeded || string(o.Result) != `{"n":1}` {
			t.Errorf("join: %+v", o)
		}
		for _, j := range []*job.Job{second, third, fourth} {
			if m.runs(j) {
				t.Errorf("%s was run", j.ID)
			}
		}
		m.end()
	})
}

// A joined job ends badly when the holder did, and runs itself when the holder's end says nothing of the work, when the holder
// gave the lock up without an end, or when nobody can tell.
func TestJoin(t *testing.T) {
	t.Parallel()
	dead := fault.New(fault.HTTPStatus, "410 Gone")
	tests := map[string]struct {
		end     *task.Task
		release bool
		fails   bool
		runs    bool
		says    string
	}{
		"dead":                 {end: &task.Task{State: task.Dead, Fault: dead}, says: "joined task feeds:a, which ended dead: 410 Gone"},
		"quarantined":          {end: &task.Task{State: task.Quarantined}, says: "which ended quarantined"},
		"cancelled":            {end: &task.Task{State: task.Cancelled}, release: true, runs: true},
		"dropped":              {end: &task.Task{State: task.Dropped}, release: true, runs: true},
		"to be retried":        {release: true, runs: true},
		"an earlier one's end": {end: &task.Task{State: task.Completed, Ended: time.Unix(1, 0)}, release: true, runs: true},
		"nobody can tell":      {fails: true, release: true, runs: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, m *manager, store *memory, e *ends) {
				e.fails = tt.fails
				first, second := newJob("feeds", "a", "x"), newJob("system", "b", "x")
				m.feeds.Offer(first)
				after(time.Second)
				m.system.Offer(second)
				after(time.Minute)
				if calls := store.count(); calls > 60 {
					t.Errorf("%d calls to the store in a minute of waiting", calls)
				}
				if tt.end != nil {
					end := *tt.end
					end.ID = first.ID
					e.tell(&end)
				}
				if tt.release {
					m.finish(first)
				}
				after(20 * time.Second)
				o := m.outcome(second)
				if m.runs(second) != tt.runs {
					t.Fatalf("runs %v, want %v; outcome %+v", m.runs(second), tt.runs, o)
				}
				if !tt.runs && (o.End != job.Faulted || !o.Fault.Permanent || !strings.Contains(o.Fault.Message, tt.says)) {
					t.Errorf("ended as %+v %v, want it to say %q", o, o.Fault, tt.says)
				}
				if tt.runs {
					m.finish(second)
				} else {
					m.finish(first)
				}
				m.end()
				if store.taken() != 0 {
					t.Errorf("%d locks left", store.taken())
				}
			})
		})
	}
}

// A job that gets the lock of the task it waited for listens a moment longer: the end is told just after the release.
func TestJoinEndAfterRelease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, e *ends) {
		first, second := newJob("feeds", "a", "x"), newJob("system", "b", "x")
		m.feeds.Offer(first)
		after(time.Second)
		m.system.Offer(second)
		after(time.Second)
		m.finish(first)
		for m.locker.Waiting()[0].Until.IsZero() { // until it has the lock
			after(time.Millisecond)
		}
		e.tell(&task.Task{ID: first.ID, State: task.Completed, Result: []byte(`2`)})
		after(time.Second)
		if o := m.outcome(second); o.End != job.Succeeded || string(o.Result) != "2" || m.runs(second) || store.taken() != 0 {
			t.Errorf("%+v, runs %v, %d locks left", o, m.runs(second), store.taken())
		}
		m.end()
	})
}

// A lock that a dead manager left for the very same task is waited for, whatever the policy: nobody joins itself.
func TestOwnOldLock(t *testing.T) {
	t.Parallel()
	for _, policy := range []settings.LockPolicy{settings.LockJoin, settings.LockReturn, settings.LockSkip} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
				m.set(func() { m.policy = policy })
				j := newJob("feeds", "a", "x")
				k, _ := lock.NewKey("pull", []string{"url"}, j.Payload)
				if held, _, _ := store.Acquire(t.Context(), k, lock.NewToken(), lock.DefaultLease, lock.Holder{Task: j.ID, Manager: "dead"}); !held {
					t.Fatal("not taken")
				}
				m.feeds.Offer(j)
				after(lock.DefaultLease - time.Second)
				if m.runs(j) || m.outcome(j).End != 0 {
					t.Fatalf("runs %v, ended %+v, while the lock is there", m.runs(j), m.outcome(j))
				}
				after(2 * time.Second)
				if !m.runs(j) {
					t.Error("does not run once the lock has gone")
				}
				m.finish(j)
				m.end()
			})
		})
	}
}

// While the store is away, tasks wait for it or run without a lock, as the setting says; neither spins.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		store.set(func() { store.away = true })
		waits, runs := newJob("feeds", "a", "x"), newJob("feeds", "b", "y")
		m.feeds.Offer(waits)
		after(time.Minute)
		if m.runs(waits) || m.outcome(waits).End != 0 || m.locker.Health() == nil || store.count() > 60 {
			t.Fatalf("runs %v, ended %+v, health %v, %d calls", m.runs(waits), m.outcome(waits), m.locker.Health(), store.count())
		}
		store.set(func() { store.away = false })
		after(4 * time.Second)
		if !m.runs(waits) || m.locker.Health() != nil {
			t.Error("does not run after the store's return")
		}
		m.finish(waits)
		synctest.Wait()
		store.set(func() { store.away = true })
		m.set(func() { m.missing = settings.LockMissingRun })
		m.feeds.Offer(runs)
		after(0)
		if !m.runs(runs) {
			t.Error("does not run without a lock")
		}
		m.feeds.Cancel(runs)
		if !m.isCancelled(runs) {
			t.Error("a job that runs without a lock cannot be cancelled")
		}
		m.finish(runs)
		m.end()
	})
}

// A job whose lock is gone, or cannot be renewed, is interrupted once, a quarter of the lease before another can have the lock.
func TestLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		evicted := newJob("feeds", "a", "x")
		m.feeds.Offer(evicted)
		after(time.Second)
		store.set(func() { clear(store.locks) })
		after(lock.DefaultLease / 4)
		if !m.isLost(evicted) || len(m.locker.Held()) != 0 {
			t.Error("an evicted lock is not noticed within a beat")
		}
		m.finish(evicted)

		cut := newJob("feeds", "b", "y")
		m.feeds.Offer(cut)
		after(0)
		store.set(func() { store.away = true })
		after(lock.DefaultLease*3/4 - 10*time.Millisecond)
		if m.isLost(cut) {
			t.Error("interrupted too early")
		}
		after(20 * time.Millisecond)
		if !m.isLost(cut) || store.taken() != 1 {
			t.Errorf("interrupted %v while the store still keeps %d locks", m.isLost(cut), store.taken())
		}
		store.set(func() { store.away = false })
		after(time.Minute)
		if n := len(m.all(&m.interrupted)); n != 2 {
			t.Errorf("%d interruptions of 2 jobs", n)
		}
		m.finish(cut)
		m.end()
	})
}
