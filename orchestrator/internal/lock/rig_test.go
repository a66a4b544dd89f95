package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

const (
	// ttl is that of locks whose end is waited for: the shortest that memcached can tell from none.
	ttl = time.Second
	// long is that of locks that must not end before their test does.
	long = time.Hour
	// patience is how long a busy machine may take for anything.
	patience = 30 * time.Second
)

// server is what a test does to the server behind a store.
type server interface {
	Addr() string
	Kill()
	Start()
	Freeze()
	Thaw()
}

// patient repeats what a busy machine did not answer in time.
type patient struct{ lock.Store }

func (p patient) repeat(ctx context.Context, try func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		pause, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		<-pause.Done()
		cancel()
	}
}

func (p patient) Acquire(ctx context.Context, k lock.Key, token lock.Token, life time.Duration, h lock.Holder) (held bool, current lock.Holder, err error) {
	err = p.repeat(ctx, func() (err error) {
		held, current, err = p.Store.Acquire(ctx, k, token, life, h)
		return err
	})
	return held, current, err
}

func (p patient) Renew(ctx context.Context, leases []lock.Lease, life time.Duration) (results []lock.Renewal) {
	_ = p.repeat(ctx, func() error {
		results = p.Store.Renew(ctx, leases, life)
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
		return nil
	})
	return results
}

func (p patient) Release(ctx context.Context, k lock.Key, token lock.Token) error {
	return p.repeat(ctx, func() error { return p.Store.Release(ctx, k, token) })
}

// rig is a store and, unless it is in this process, its server.
type rig struct {
	kind   string     // memcached or redis
	store  lock.Store // a patient one
	bare   lock.Store // the store itself
	server server     // nil for the one in this process
}

// open returns a store on a server's address.
func open(kind, address string) (lock.Store, func() error) {
	if kind == "memcached" {
		m, err := lock.NewMemcached([]string{address}, 0)
		if err != nil {
			return nil, func() error { return err }
		}
		return m, m.Close
	}
	client := redis.NewClient(&redis.Options{
		Addr: address, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return lock.NewRedis(client), client.Close
}

func newRig(t *testing.T, kind string, s server) *rig {
	t.Helper()
	store, closeStore := open(kind, s.Addr())
	t.Cleanup(func() {
		if err := closeStore(); err != nil {
			t.Error(err)
		}
	})
	return &rig{kind: kind, store: patient{store}, bare: store, server: s}
}

// settle makes a memcached one that has been there for long.
func settle(t *testing.T, address string) {
	t.Helper()
	c := memcache.New(address)
	defer func() { _ = c.Close() }()
	if err := c.Set(&memcache.Item{Key: lock.EpochKey, Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
}

// onServers runs a test on a real memcached and a real redis-server.
func onServers(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run("memcached", func(t *testing.T) {
		t.Parallel()
		s := testenv.StartMemcached(t)
		settle(t, s.Addr())
		test(t, newRig(t, "memcached", s))
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		test(t, newRig(t, "redis", testenv.StartRedis(t, testenv.RedisOptions{})))
	})
}

// onAll runs a test on the in-process Redis too, of which the embedded broker is made.
func onAll(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	onServers(t, test)
	t.Run("in-process", func(t *testing.T) {
		t.Parallel()
		store, closeStore := open("redis", miniredis.RunT(t).Addr())
		t.Cleanup(func() { _ = closeStore() })
		test(t, &rig{kind: "redis", store: patient{store}, bare: store})
	})
}

// key returns the lock key of an address.
func key(t *testing.T, url string) lock.Key {
	t.Helper()
	k, err := lock.NewKey("pull", []string{"url"}, []byte(`{"url":"`+url+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func holder(name string) lock.Holder {
	return lock.Holder{Task: task.ID{Queue: "feeds", Key: name}, Manager: "m1", Since: time.Unix(1_700_000_000, 5).UTC()}
}

// mustAcquire takes a lock that nobody has.
func (r *rig) mustAcquire(t *testing.T, k lock.Key, token lock.Token) {
	t.Helper()
	held, current, err := r.store.Acquire(t.Context(), k, token, long, holder("a"))
	if err != nil || !held {
		t.Fatalf("acquire: %v, %v, %v; want the lock", held, current, err)
	}
}

// has reports whether the token has the lock, which it then has for longer.
func (r *rig) has(t *testing.T, k lock.Key, token lock.Token) bool {
	t.Helper()
	renewal := r.store.Renew(t.Context(), []lock.Lease{{Key: k, Token: token}}, long)[0]
	if renewal.Err != nil {
		t.Fatal(renewal.Err)
	}
	return renewal.Still
}

// eventually polls until the condition holds.
func eventually(t *testing.T, within time.Duration, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(within)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
		<-ticker.C
	}
}

// errStore is what the fake store of the tests says while it is away.
var errStore = errors.New("no answer")
