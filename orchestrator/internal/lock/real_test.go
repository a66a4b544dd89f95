package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// cuttable is the store of a manager that can be cut off from the server: its calls fail, and nobody else's.
type cuttable struct {
	lock.Store
	cut atomic.Bool
}

var errCut = errors.New("cut off")

func (c *cuttable) Acquire(ctx context.Context, k lock.Key, token lock.Token, life time.Duration, h lock.Holder) (bool, lock.Holder, error) {
	if c.cut.Load() {
		return false, lock.Holder{}, errCut
	}
	return c.Store.Acquire(ctx, k, token, life, h)
}

func (c *cuttable) Renew(ctx context.Context, leases []lock.Lease, life time.Duration) []lock.Renewal {
	if !c.cut.Load() {
		return c.Store.Renew(ctx, leases, life)
	}
	results := make([]lock.Renewal, len(leases))
	for i := range results {
		results[i].Err = errCut
	}
	return results
}

// A manager that is cut off while memcached is restarted, and so learns of nothing, has given its lock up by its own clock
// before another manager gets it; the other waits for memcached, without a slot, and goes on by itself.
func TestTwoManagersAndARestart(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	server := testenv.StartMemcached(t)
	settle(t, server.Addr())
	first := &cuttable{Store: newRig(t, "memcached", server).bare}
	m1 := newManagerFor(t, "m1", first, newEnds(), lease)
	m2 := newManagerFor(t, "m2", newRig(t, "memcached", server).bare, newEnds(), lease)
	t.Cleanup(func() { m1.end(); m2.end() })
	one, two := newJob("feeds", "a", "x"), newJob("system", "b", "x")
	t.Cleanup(func() { m1.finish(one); m2.finish(two) })

	m1.feeds.Offer(one)
	eventually(t, patience, "the first runs", func() bool { return m1.runs(one) })
	eventually(t, patience, "its lock is renewed", func() bool {
		h := m1.locker.Held()
		return len(h) == 1 && h[0].Until.Sub(h[0].Since) > lease
	})
	m2.system.Offer(two)
	eventually(t, patience, "the second waits", func() bool { return len(m2.locker.Waiting()) == 1 })

	first.cut.Store(true)
	server.Kill()
	eventually(t, patience, "the second's manager knows that memcached is away", func() bool { return m2.locker.Health() != nil })
	server.Start()
	eventually(t, patience, "the second runs", func() bool { return m2.runs(two) })
	if len(m1.locker.Held()) != 0 || !m1.isLost(one) {
		t.Errorf("the second runs while the first holds %+v, interrupted %v", m1.locker.Held(), m1.isLost(one))
	}
	if m2.locker.Health() != nil {
		t.Errorf("memcached answers, and it says %v", m2.locker.Health())
	}
}

// Through each real server, jobs about one thing run one at a time and all others at once.
func TestThroughServers(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, r *rig) {
		e := newEnds()
		m := newManager(t, "m1", r.bare, e)
		one, same, other := newJob("feeds", "a", "x"), newJob("system", "b", "x"), newJob("feeds", "c", "y")
		m.feeds.Offer(one)
		eventually(t, patience, "the first runs", func() bool { return m.runs(one) })
		m.system.Offer(same)
		m.feeds.Offer(other)
		eventually(t, patience, "the other runs, the same waits", func() bool {
			w := m.locker.Waiting()
			return m.runs(other) && len(w) == 1 && w[0].Holder.Task == one.ID && w[0].Holder.Manager == "m1"
		})
		m.finish(one)
		eventually(t, patience, "the same runs", func() bool { return m.runs(same) })
		m.finish(other)
		m.finish(same)
		m.end()
	})
}
