package lock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A memcached that was restarted or flushed has lost a lock: its renewal says so, and nobody gets one until the time is over
// for which the holder may believe in it, even if it asks nothing.
func TestMemcachedLosesAll(t *testing.T) {
	t.Parallel()
	ways := map[string]func(t *testing.T, m *testenv.Memcached){
		"restart": func(_ *testing.T, m *testenv.Memcached) { m.Kill(); m.Start() },
		"flush": func(t *testing.T, m *testenv.Memcached) {
			c := memcache.New(m.Addr())
			defer func() { _ = c.Close() }()
			if err := c.FlushAll(); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, lose := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := testenv.StartMemcached(t)
			settle(t, m.Addr())
			r := newRig(t, "memcached", m)
			const longer = 4 * ttl
			k, first, second := key(t, "one"), lock.NewToken(), lock.NewToken()
			asked := time.Now()
			if held, _, err := r.store.Acquire(t.Context(), k, first, longer, holder("a")); err != nil || !held {
				t.Fatal(held, err)
			}
			lose(t, m)
			said := ""
			eventually(t, patience, "the lock can be taken", func() bool {
				held, _, err := r.bare.Acquire(t.Context(), k, second, longer, holder("b"))
				if err != nil {
					said = err.Error()
				}
				return held
			})
			if early := asked.Add(longer * 3 / 4); time.Now().Before(early) {
				t.Errorf("taken %s before the holder stops believing", time.Until(early))
			}
			if !strings.Contains(said, "started or flushed a moment ago") {
				t.Errorf("meanwhile it said %q, want the reason", said)
			}
			if r.has(t, k, first) {
				t.Error("a renewal does not notice that the lock is lost")
			}
		})
	}
}

// A lock that memcached dropped for want of memory is noticed by its renewal.
func TestMemcachedEvicts(t *testing.T) {
	t.Parallel()
	m := testenv.StartMemcached(t, "-m", "2", "-I", "512k", "-o", "no_lru_maintainer")
	settle(t, m.Addr())
	r := newRig(t, "memcached", m)
	k, token := key(t, "one"), lock.NewToken()
	if held, _, err := r.store.Acquire(t.Context(), k, token, time.Hour, holder("a")); err != nil || !held {
		t.Fatal(held, err)
	}
	c := memcache.New(m.Addr())
	defer func() { _ = c.Close() }()
	items, err := c.GetMulti([]string{lock.ItemName(k)})
	if err != nil || len(items) != 1 {
		t.Fatal(items, err)
	}
	like := items[lock.ItemName(k)] // the others are of its size, so that they push it out
	const enough = 30_000           // more than twice what fits
	for n := range enough {
		name := fmt.Sprintf("%-*d", len(like.Key), n)
		other := memcache.Item{Key: strings.ReplaceAll(name, " ", "."), Value: like.Value}
		if err := c.Set(&other); err != nil {
			t.Fatal(err)
		}
	}
	if r.has(t, k, token) {
		t.Error("a renewal does not notice that the lock was evicted, or it was not")
	}
}

// Locks are spread over several servers; when one is away, the others' locks can be had, whatever the order in which a manager
// names the servers.
func TestMemcachedServers(t *testing.T) {
	t.Parallel()
	var addresses []string
	var servers []*testenv.Memcached
	for range 3 {
		m := testenv.StartMemcached(t)
		settle(t, m.Addr())
		servers, addresses = append(servers, m), append(addresses, m.Addr())
	}
	store := func(addresses ...string) *lock.Memcached {
		m, err := lock.NewMemcached(addresses, patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	one, other := store(addresses...), store(addresses[2], addresses[0], addresses[1])
	const locks = 60
	var leases []lock.Lease
	for i := range locks {
		l := lock.Lease{Key: key(t, fmt.Sprint(i)), Token: lock.NewToken()}
		leases = append(leases, l)
		if held, _, err := one.Acquire(t.Context(), l.Key, l.Token, long, holder("a")); err != nil || !held {
			t.Fatal(held, err)
		}
		if held, _, err := other.Acquire(t.Context(), l.Key, lock.NewToken(), long, holder("b")); err != nil || held {
			t.Fatalf("lock %d was given twice: %v, %v", i, held, err)
		}
	}
	servers[1].Kill()
	away := 0
	for i, renewal := range other.Renew(t.Context(), leases, long) {
		switch {
		case renewal.Err != nil && strings.Contains(renewal.Err.Error(), addresses[1]):
			away++
		case renewal.Err != nil || !renewal.Still:
			t.Errorf("lock %d: %+v", i, renewal)
		}
	}
	if away < locks/10 || away > locks/2+locks/10 {
		t.Errorf("%d of %d locks were in one of three servers", away, locks)
	}
}

// A store without a server is refused.
func TestMemcachedNoServer(t *testing.T) {
	t.Parallel()
	if _, err := lock.NewMemcached(nil, 0); err == nil {
		t.Error("no error")
	}
}
