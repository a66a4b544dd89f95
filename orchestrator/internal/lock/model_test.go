package lock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// Whatever the store's delays and absences, and however calls and answers are held up between a manager and the store, no two
// managers believe at one time that they have the same lock; and in the end all work is done and no lock is left.
func TestNeverTwoBelieve(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { neverTwoBelieve(t, seed) })
		})
	}
}

func neverTwoBelieve(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test that can be repeated
	var dice sync.Mutex
	upTo := func(d time.Duration) time.Duration {
		dice.Lock()
		defer dice.Unlock()
		return time.Duration(random.Int64N(int64(d)))
	}
	oneIn := func(n int) bool { return upTo(time.Duration(n)) == 0 }

	store, e := newMemory(), newEnds()
	store.slow = func() (before, after time.Duration) {
		before, after = upTo(20*time.Millisecond), upTo(20*time.Millisecond)
		if oneIn(15) {
			before = upTo(12 * time.Second) // paused, or stuck on the way
		}
		if oneIn(15) {
			after = upTo(12 * time.Second)
		}
		return before, after
	}
	var managers []*manager
	for i := range 3 {
		managers = append(managers, newManager(t, fmt.Sprint("m", i), store, e))
	}
	const rounds = 4000
	began := map[*job.Job]time.Time{}
	for n := range rounds {
		after(50 * time.Millisecond)
		believing := map[string]string{}
		for i, m := range managers {
			for _, h := range m.locker.Held() {
				if !time.Now().Before(h.Until) {
					continue
				}
				if other := believing[h.Key]; other != "" && !t.Failed() {
					t.Errorf("round %d: %s and m%d both believe in %s", n, other, i, h.Key)
				}
				believing[h.Key] = fmt.Sprint("m", i)
			}
			finishSome(m, began, upTo)
			if oneIn(20) && n < rounds*3/4 {
				m.feeds.Offer(newJob("feeds", fmt.Sprint(n, "-", i), fmt.Sprint(upTo(2))))
			}
		}
		if n >= rounds*3/4 {
			store.set(func() { store.away = false })
		} else if oneIn(100) {
			store.set(func() { store.away = !store.away })
		}
	}
	for i, m := range managers {
		for over := false; !over; after(time.Second) {
			over = len(m.locker.Held())+len(m.locker.Waiting()) == 0
			for _, each := range managers {
				finishSome(each, began, func(time.Duration) time.Duration { return 0 })
			}
		}
		m.end()
		if len(m.all(&m.offered)) == 0 {
			t.Errorf("m%d ran nothing", i)
		}
	}
	after(time.Minute) // what was held up may still take a lock that nobody waits for: it ends by itself
	if n := store.taken(); n != 0 {
		t.Errorf("%d locks left", n)
	}
}

// finishSome ends runs that have lasted for long enough, and those that were interrupted.
func finishSome(m *manager, began map[*job.Job]time.Time, upTo func(time.Duration) time.Duration) {
	var done []*job.Job
	m.set(func() {
		for _, j := range m.offered {
			if _, over := m.outcomes[j]; over {
				continue
			}
			if began[j].IsZero() {
				began[j] = time.Now().Add(upTo(15*time.Second) + 1)
			}
			if time.Now().After(began[j]) {
				done = append(done, j)
			}
		}
		for _, j := range m.interrupted {
			if _, over := m.outcomes[j]; !over {
				began[j] = time.Now()
			}
		}
	})
	for _, j := range done {
		m.finish(j)
	}
}
