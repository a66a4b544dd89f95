package lock_test

import (
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/fault"
)

// With lock_missing=run a run goes on while its lock cannot be renewed, without spinning, and has its lock again when the store
// answers; a store that answers and does not have it any more interrupts the run all the same.
func TestRunGoesOnWithoutStore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		m.set(func() { m.missing = settings.LockMissingRun })
		j := newJob("feeds", "a", "x")
		m.feeds.Offer(j)
		after(time.Second)
		store.set(func() { store.away = true })
		calls := store.count()
		after(lock.DefaultLease * 3 / 4)
		if made := store.count() - calls; m.isLost(j) || made > 30 {
			t.Errorf("interrupted %v, after %d calls", m.isLost(j), made)
		}
		store.set(func() { store.away = false })
		after(time.Second)
		if held := m.locker.Held(); m.isLost(j) || len(held) != 1 || !time.Now().Before(held[0].Until) {
			t.Errorf("interrupted %v; after the store's return %+v is held", m.isLost(j), held)
		}
		store.set(func() { store.away = true })
		after(time.Minute)
		if m.isLost(j) {
			t.Error("interrupted while the store is away")
		}
		store.set(func() { store.away = false })
		after(time.Second)
		if !m.isLost(j) {
			t.Error("the lock had ended, and its run goes on")
		}
		m.finish(j)
		m.end()
	})
}

// A job that waits is counted and found, and no longer when it has been handed on.
func TestWaiting(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, _ *memory, _ *ends) {
		first, second, third := newJob("feeds", "a", "x"), newJob("system", "b", "x"), newJob("system", "c", "x")
		m.feeds.Offer(first)
		after(time.Second)
		m.system.Offer(second)
		m.system.Offer(third)
		after(time.Second)
		if f, s := m.feeds.Waiting(), m.system.Waiting(); f != 0 || s != 2 || m.locker.Waits(first.ID) || !m.locker.Waits(second.ID) {
			t.Errorf("%d and %d wait, want 0 and 2", f, s)
		}
		m.system.Cancel(third)
		if m.system.Waiting() != 1 || m.locker.Waits(third.ID) {
			t.Error("one that was cancelled still waits")
		}
		m.finish(first)
		after(time.Minute)
		if !m.runs(second) || m.system.Waiting() != 0 || m.locker.Waits(second.ID) {
			t.Errorf("one that runs still waits: %d", m.system.Waiting())
		}
		m.finish(second)
		m.end()
	})
}

// When a holder gives its lock up without an end, because it is tried again later, the one that waits for it longest runs at once.
func TestReleasedWithoutAnEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, _ *memory, _ *ends) {
		first, second := newJob("feeds", "a", "x"), newJob("system", "b", "x")
		m.feeds.Offer(first)
		after(time.Second)
		m.system.Offer(second)
		after(time.Minute) // its tries are seconds apart by now
		m.finish(first)    // and nobody is told of an end
		after(time.Second)
		if !m.runs(second) {
			t.Error("it still waits for a lock that is free")
		}
		m.finish(second)
		m.end()
	})
}

// Skipping is told from failing by its own kind of fault.
func TestSkippedKind(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, _ *memory, _ *ends) {
		m.set(func() { m.policy = settings.LockSkip })
		first, second := newJob("feeds", "a", "x"), newJob("system", "b", "x")
		m.feeds.Offer(first)
		after(time.Second)
		m.system.Offer(second)
		after(0)
		if o := m.outcome(second); o.Fault == nil || o.Fault.Kind != fault.Skipped {
			t.Errorf("%+v", o)
		}
		m.finish(first)
		m.end()
	})
}

// The lock of a job of which something may still be at work is neither renewed nor released: it keeps others away until it ends.
func TestLeave(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		first, second := newJob("feeds", "a", "x"), newJob("system", "b", "x")
		m.feeds.Offer(first)
		after(lock.DefaultLease / 8)
		m.locker.Leave(first)
		m.system.Offer(second)
		after(lock.DefaultLease * 6 / 8)
		if m.runs(second) || store.taken() != 1 || len(m.locker.Held()) != 0 {
			t.Error("the lock was released")
		}
		after(4 * lock.DefaultLease)
		if !m.runs(second) {
			t.Error("the lock does not end")
		}
		m.finish(second)
		m.end()
	})
}
