package lock_test

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/lock"
)

// A lock has one token, whoever asks is told who has it, and the token that has it gets it again.
func TestOneToken(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, r *rig) {
		k, first, second := key(t, "one"), lock.NewToken(), lock.NewToken()
		r.mustAcquire(t, k, first)
		held, current, err := r.store.Acquire(t.Context(), k, second, long, holder("b"))
		if err != nil || held || !reflect.DeepEqual(current, holder("a")) {
			t.Errorf("second token: %v, %+v, %v; want to be told of the first", held, current, err)
		}
		r.mustAcquire(t, k, first)
		r.mustAcquire(t, key(t, "another"), second)
	})
}

// Releasing frees a lock at once, leaves another's lock alone, and may be repeated.
func TestRelease(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, r *rig) {
		k, first, second := key(t, "one"), lock.NewToken(), lock.NewToken()
		r.mustAcquire(t, k, first)
		release := func(token lock.Token) {
			t.Helper()
			if err := r.store.Release(t.Context(), k, token); err != nil {
				t.Fatal(err)
			}
		}
		release(second)
		if !r.has(t, k, first) {
			t.Error("a release took another's lock away")
		}
		release(first)
		r.mustAcquire(t, k, second)
		release(first)
		if !r.has(t, k, second) {
			t.Error("a late release took the next holder's lock away")
		}
	})
}

// A lock lives for at least its time and, when it is not renewed, no more than two seconds longer.
func TestExpiry(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, r *rig) {
		k := key(t, "one")
		asked := time.Now()
		if held, _, err := r.store.Acquire(t.Context(), k, lock.NewToken(), ttl, holder("a")); err != nil || !held {
			t.Fatal(held, err)
		}
		taken := time.Now()
		next := lock.NewToken()
		eventually(t, patience, "the lock is free", func() bool {
			held, _, err := r.store.Acquire(t.Context(), k, next, ttl, holder("b"))
			if err != nil {
				t.Fatal(err)
			}
			return held
		})
		const busy = 2 * time.Second // for the machine
		if time.Since(asked) < ttl || time.Since(taken) > ttl+2*time.Second+busy {
			t.Errorf("the lock lived for %s, want %s and at most 2 s more", time.Since(taken), ttl)
		}
	})
}

// A lock that is renewed stays; a renewal of a lock that is gone or another's says so, each for itself.
func TestRenewal(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, r *rig) {
		const life = 4 * ttl // so long that a busy machine renews in time
		token, stranger := lock.NewToken(), lock.NewToken()
		leases := make([]lock.Lease, 300) // more than one batch
		for i := range leases {
			leases[i] = lock.Lease{Key: key(t, fmt.Sprint(i)), Token: token}
			if held, _, err := r.store.Acquire(t.Context(), leases[i].Key, token, life, holder("a")); err != nil || !held {
				t.Fatal(held, err)
			}
			if i%50 == 49 { // a busy machine takes its time to come to the last
				r.store.Renew(t.Context(), leases[:i+1], life)
			}
		}
		leases[7].Token = stranger
		leases[200].Key = key(t, "never taken")
		began := time.Now()
		eventually(t, patience, "renewed for longer than any would live without", func() bool {
			for i, renewal := range r.store.Renew(t.Context(), leases, life) {
				if renewal.Err != nil || renewal.Still != (i != 7 && i != 200) {
					t.Fatalf("lock %d after %s: %+v", i, time.Since(began), renewal)
				}
			}
			return time.Since(began) > life+2*time.Second
		})
	})
}

// A server that does not answer is an error in bounded time, and the store works again by itself when it does.
func TestServerAway(t *testing.T) {
	t.Parallel()
	ways := map[string]struct{ leave, come func(server) }{
		"frozen": {server.Freeze, server.Thaw},
		"killed": {server.Kill, server.Start},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, r *rig) {
				k, token := key(t, "one"), lock.NewToken()
				r.mustAcquire(t, k, token)
				way.leave(r.server)
				steps := map[string]func() error{
					"acquire": func() error {
						held, _, err := r.bare.Acquire(t.Context(), k, lock.NewToken(), long, holder("b"))
						if held {
							t.Error("got a lock from a server that is away")
						}
						return err
					},
					"renew": func() error {
						return r.bare.Renew(t.Context(), []lock.Lease{{Key: k, Token: token}}, long)[0].Err
					},
					"release": func() error { return r.bare.Release(t.Context(), k, token) },
				}
				for step, try := range steps {
					began := time.Now()
					if err := try(); err == nil {
						t.Errorf("%s: no error from a server that is away", step)
					}
					if took := time.Since(began); took > 5*time.Second {
						t.Errorf("%s took %s, want a bounded time", step, took)
					}
				}
				way.come(r.server)
				if r.kind == "memcached" && name == "killed" {
					settle(t, r.server.Addr())
				}
				next := lock.NewToken()
				eventually(t, patience, "a lock can be taken again", func() bool {
					held, _, err := r.bare.Acquire(t.Context(), key(t, "new"), next, long, holder("b"))
					return err == nil && held
				})
			})
		})
	}
}

// Many goroutines that want one lock have it one at a time.
func TestContention(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, r *rig) {
		const goroutines, rounds = 8, 15
		var inside, had atomic.Int32
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for range rounds {
					token := lock.NewToken()
					k := key(t, "one")
					eventually(t, 2*patience, "the lock can be had", func() bool {
						held, _, err := r.store.Acquire(t.Context(), k, token, long, holder("a"))
						if err != nil {
							t.Error(err)
						}
						return held
					})
					if inside.Add(1) != 1 {
						t.Error("two have the lock")
					}
					had.Add(1)
					inside.Add(-1)
					if err := r.store.Release(t.Context(), k, token); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if had.Load() != goroutines*rounds {
			t.Errorf("had %d times, want %d", had.Load(), goroutines*rounds)
		}
	})
}
