package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// Names of what lies in memcached. The epoch and the grace of a server lie in each once: see guard.
const (
	lockPrefix = "drover:lock:"
	epochKey   = "drover:lock-epoch"
	graceKey   = "drover:lock-grace"
)

// gone is an expiration in the past. memcached knows no compare-and-delete, but a compare-and-swap that leaves an item which
// has expired is one, in one step. (A delete after a swap could, if it is delayed, hit the lock of the next holder.)
const gone = -1

// memcachedRounds is how often a call looks again when the lock changes under it.
const memcachedRounds = 3

// Memcached keeps locks in one or several memcached servers: each lock in one of them, chosen by its key. Every manager must
// name the same servers, in any order. memcached is a cache: it drops what it has no memory for. Give it what it needs, or
// start it with -M, which makes it say so instead. What it drops is noticed at the next renewal; that it was restarted
// or flushed is noticed at once: see guard.
//
// A lock is taken by add; it is renewed and released by gets and cas.
type Memcached struct {
	servers []*memcachedServer
}

// NewMemcached returns a store in the memcached servers at addresses such as "10.0.0.5:11211" or, for a Unix socket, a path.
// It connects when it is used; timeout bounds each step of a call, half a second when it is zero. An error says that there is
// no address.
func NewMemcached(addresses []string, timeout time.Duration) (*Memcached, error) {
	if len(addresses) == 0 {
		return nil, errors.New("no memcached server is named: name at least one, or keep locks in Redis")
	}
	m := &Memcached{}
	for _, a := range addresses {
		m.servers = append(m.servers, newMemcachedServer(a, timeout))
	}
	return m, nil
}

// Close closes idle connections.
func (m *Memcached) Close() error {
	var problems []error
	for _, s := range m.servers {
		problems = append(problems, s.client.Close())
	}
	return errors.Join(problems...)
}

// server returns the server of a key, by rendezvous hashing: when one more is named, only the keys that go to it move.
func (m *Memcached) server(key Key) *memcachedServer {
	return slices.MaxFunc(m.servers, func(a, b *memcachedServer) int {
		return cmp.Or(cmp.Compare(a.weight(key), b.weight(key)), cmp.Compare(a.address, b.address))
	})
}

func (s *memcachedServer) weight(key Key) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key.hash + s.address))
	return h.Sum64()
}

// memcachedLife is a ttl in memcached's seconds. Its clock ticks once a second, so that an item lives up to a second shorter
// than was asked for.
func memcachedLife(ttl time.Duration) int32 {
	return int32(min(math.Ceil(ttl.Seconds())+1, (30 * 24 * time.Hour).Seconds())) // longer would be a date
}

// Acquire takes a lock: it adds it, and reads it back together with the guard of the server.
func (m *Memcached) Acquire(ctx context.Context, key Key, token Token, ttl time.Duration, holder Holder) (bool, Holder, error) {
	s := m.server(key)
	held, current, err := s.acquire(ctx, key, token, ttl, holder)
	if err != nil {
		return false, Holder{}, fmt.Errorf("take the lock %s in memcached at %s: %w", key, s.address, err)
	}
	return held, current, nil
}

func (s *memcachedServer) acquire(ctx context.Context, key Key, token Token, ttl time.Duration, holder Holder) (bool, Holder, error) {
	name := lockPrefix + key.hash
	for range memcachedRounds {
		item := memcache.Item{Key: name, Value: encode(token, holder), Expiration: memcachedLife(ttl)}
		err := s.call(ctx, func() error { return s.client.Add(&item) })
		added := err == nil
		if err != nil && !errors.Is(err, memcache.ErrNotStored) {
			return false, Holder{}, err
		}
		var items map[string]*memcache.Item
		if err := s.call(ctx, func() (err error) {
			items, err = s.client.GetMulti([]string{name, epochKey, graceKey})
			return err
		}); err != nil {
			return false, Holder{}, err
		}
		found := items[name]
		var has Token
		var current Holder
		if found != nil {
			has, current = decode(found.Value)
		}
		if err := s.guard(ctx, items, ttl); err != nil {
			if has == token {
				err = errors.Join(err, s.swap(ctx, found, gone))
			}
			return false, Holder{}, err
		}
		switch {
		case found == nil: // it expired between the two
		case has != token:
			return false, current, nil
		case added:
			return true, holder, nil
		default: // a call whose answer was lost had taken it
			if err := s.swap(ctx, found, memcachedLife(ttl)); err == nil || !changed(err) {
				return err == nil, holder, err
			}
		}
	}
	return false, Holder{}, errChanging
}

// Renew extends locks.
func (m *Memcached) Renew(ctx context.Context, leases []Lease, ttl time.Duration) []Renewal {
	results := make([]Renewal, len(leases))
	of := map[*memcachedServer][]int{}
	for i, l := range leases {
		s := m.server(l.Key)
		of[s] = append(of[s], i)
	}
	for s, indexes := range of {
		for batch := range slices.Chunk(indexes, memcachedBatch) {
			s.renew(ctx, leases, batch, ttl, results)
		}
	}
	return results
}

// Release gives up a lock.
func (m *Memcached) Release(ctx context.Context, key Key, token Token) error {
	s := m.server(key)
	if err := s.release(ctx, key, token); err != nil {
		return fmt.Errorf("release the lock %s in memcached at %s: %w", key, s.address, err)
	}
	return nil
}

func (s *memcachedServer) release(ctx context.Context, key Key, token Token) error {
	for range memcachedRounds {
		var item *memcache.Item
		err := s.call(ctx, func() (err error) { item, err = s.client.Get(lockPrefix + key.hash); return err })
		if errors.Is(err, memcache.ErrCacheMiss) {
			return nil
		}
		if err != nil {
			return err
		}
		if has, _ := decode(item.Value); has != token {
			return nil
		}
		if err := s.swap(ctx, item, gone); err == nil || !changed(err) {
			return err
		}
	}
	return errChanging
}
