package lock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

const (
	memcachedTimeout = 500 * time.Millisecond
	memcachedConns   = 16 // idle ones that are kept: one for each taker, and the renewer's
	memcachedBatch   = 128
)

// memcachedServer is one of the servers.
type memcachedServer struct {
	address string
	client  *memcache.Client
	fuse    fuse
}

func newMemcachedServer(address string, timeout time.Duration) *memcachedServer {
	client := memcache.NewFromSelector(single(address))
	client.Timeout = timeout
	if timeout <= 0 {
		client.Timeout = memcachedTimeout
	}
	client.MaxIdleConns = memcachedConns
	return &memcachedServer{address: address, client: client}
}

// single selects one server by its address, which is resolved when it is connected to.
type single string

var (
	_ memcache.ServerSelector = single("")
	_ net.Addr                = single("")
)

// PickServer implements memcache.ServerSelector.
func (s single) PickServer(string) (net.Addr, error) { return s, nil }

// Each implements memcache.ServerSelector.
func (s single) Each(f func(net.Addr) error) error { return f(s) }

// Network implements net.Addr.
func (s single) Network() string {
	if strings.Contains(string(s), "/") {
		return "unix"
	}
	return "tcp"
}

// String implements net.Addr.
func (s single) String() string { return string(s) }

// call makes a call, or none while the server is known not to answer. A connection that breaks is most often one from before a
// restart: then all idle ones are thrown away and the call is made once more. That is safe, as each may be repeated.
func (s *memcachedServer) call(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.fuse.blown(); err != nil {
		return err
	}
	err := do()
	if !answered(err) && !timedOut(err) {
		_ = s.client.Close() // these connections are broken already
		err = do()
	}
	if answered(err) {
		s.fuse.note(nil)
		return err
	}
	s.fuse.note(err)
	return err
}

// swap replaces an item that was got by itself with another life, if nobody changed it since.
func (s *memcachedServer) swap(ctx context.Context, item *memcache.Item, life int32) error {
	item.Expiration = life
	return s.call(ctx, func() error { return s.client.CompareAndSwap(item) })
}

// answered reports whether the server said what it had to say.
func answered(err error) bool {
	return err == nil || errors.Is(err, memcache.ErrNotStored) || changed(err)
}

// changed reports whether an item was not the one any more that a call was about.
func changed(err error) bool {
	return errors.Is(err, memcache.ErrCacheMiss) || errors.Is(err, memcache.ErrCASConflict) || errors.Is(err, memcache.ErrNotStored)
}

func timedOut(err error) bool {
	var connecting *memcache.ConnectTimeoutError
	var network net.Error
	return errors.As(err, &connecting) || errors.As(err, &network) && network.Timeout()
}

// renew extends the locks at the given indexes, which all lie in this server.
func (s *memcachedServer) renew(ctx context.Context, leases []Lease, indexes []int, ttl time.Duration, results []Renewal) {
	names := make([]string, len(indexes))
	for n, i := range indexes {
		names[n] = lockPrefix + leases[i].Key.hash
	}
	var items map[string]*memcache.Item
	failed := s.call(ctx, func() (err error) { items, err = s.client.GetMulti(names); return err })
	for n, i := range indexes {
		err := failed
		if err == nil {
			item := items[names[n]]
			if item == nil {
				continue // it is gone
			}
			if has, _ := decode(item.Value); has != leases[i].Token {
				continue // another has it
			}
			err = s.swap(ctx, item, memcachedLife(ttl))
		}
		switch {
		case err == nil:
			results[i].Still = true
		case errors.Is(err, memcache.ErrCacheMiss), errors.Is(err, memcache.ErrNotStored): // it has gone just now
		default: // a conflict is the late end of an earlier call of ours, or its release
			results[i].Err = fmt.Errorf("renew the lock %s in memcached at %s: %w", leases[i].Key, s.address, err)
		}
	}
}

// guard makes sure that a server which has lost what it held gives no lock for as long as somebody may believe in one from
// before. Each server holds two items: the epoch never expires, so that it is gone only when the server was restarted or
// flushed; whoever misses it sets the grace, which lives for as long as a lock is believed in, and the epoch anew. While there is
// a grace, no lock is taken. The two are read after the lock was added: what is lost before that read is seen by it, what is
// lost later is lost together with the lock. It returns why no lock may be taken; nil when one may.
func (s *memcachedServer) guard(ctx context.Context, items map[string]*memcache.Item, ttl time.Duration) error {
	if items[epochKey] != nil && items[graceKey] == nil {
		return nil
	}
	life := memcachedLife(believed(ttl))
	if items[epochKey] == nil {
		// The grace comes first: an epoch without it would say that all is well.
		for _, item := range []memcache.Item{{Key: graceKey, Value: []byte("1"), Expiration: life}, {Key: epochKey, Value: []byte("1")}} {
			err := s.call(ctx, func() error { return s.client.Add(&item) })
			if err != nil && !errors.Is(err, memcache.ErrNotStored) {
				return err
			}
		}
	}
	return fmt.Errorf("it was started or flushed a moment ago and gives no locks for up to %d s, until every holder of a lock that it lost has noticed", life)
}
