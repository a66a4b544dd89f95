package lock

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
)

//go:embed acquire.lua
var acquireSource string

//go:embed renew.lua
var renewSource string

//go:embed release.lua
var releaseSource string

const (
	// redisTimeout bounds one call. The client must heed deadlines: ContextTimeoutEnabled.
	redisTimeout = time.Second
	// redisSlack is added to every life, because the embedded broker keeps time in whole seconds.
	redisSlack = time.Second
	// redisBatch is how many locks one message renews at most.
	redisBatch = 256
)

// Redis keeps locks in Redis, one key each, drover:lock:{hash}, so that it works in a Cluster. The scripts compare the token,
// and each is one atomic step. A Redis that loses what it holds loses its locks too; with an append-only file they survive.
type Redis struct {
	client                  redis.UniversalClient
	acquire, renew, release *redis.Script

	mu    sync.Mutex
	fuses map[string]*fuse // by the node: in a Cluster one that is away must not keep away the locks of the others
}

// NewRedis returns a store in a Redis. The client stays its owner's; it must have been made with ContextTimeoutEnabled.
func NewRedis(client redis.UniversalClient) *Redis {
	return &Redis{
		client:  client,
		acquire: broker.Script(client, acquireSource), renew: broker.Script(client, renewSource), release: broker.Script(client, releaseSource),
		fuses: map[string]*fuse{},
	}
}

func redisKeys(key Key) []string { return []string{"drover:lock:{" + key.hash + "}"} }

// node is the address of the node that has a lock in a Cluster; empty when there is only one server, or it is not known.
func (r *Redis) node(ctx context.Context, key Key) string {
	c, is := r.client.(*redis.ClusterClient)
	if !is {
		return ""
	}
	bounded, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	n, err := c.MasterForKey(bounded, redisKeys(key)[0])
	if err != nil {
		return ""
	}
	return n.Options().Addr
}

// fuse is that of a node.
func (r *Redis) fuse(node string) *fuse {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.fuses[node]
	if f == nil {
		f = &fuse{}
		r.fuses[node] = f
	}
	return f
}

func redisLife(ttl time.Duration) int64 { return (ttl + redisSlack).Milliseconds() }

func mark(token Token) string { return string(token) + " " }

// Acquire takes a lock.
func (r *Redis) Acquire(ctx context.Context, key Key, token Token, ttl time.Duration, holder Holder) (bool, Holder, error) {
	var value string
	err := r.call(ctx, r.node(ctx, key), func(ctx context.Context) (err error) {
		value, err = r.acquire.Run(ctx, r.client, redisKeys(key), mark(token), encode(token, holder), redisLife(ttl)).Text()
		return err
	})
	if err != nil {
		return false, Holder{}, fmt.Errorf("take the lock %s in Redis: %w", key, err)
	}
	if value == "" {
		return true, holder, nil
	}
	_, current := decode([]byte(value))
	return false, current, nil
}

// Renew extends locks.
func (r *Redis) Renew(ctx context.Context, leases []Lease, ttl time.Duration) []Renewal {
	results := make([]Renewal, len(leases))
	byNode := map[string][]int{}
	for i, l := range leases {
		node := r.node(ctx, l.Key)
		byNode[node] = append(byNode[node], i)
	}
	var asking sync.WaitGroup
	for node, places := range byNode {
		asking.Go(func() {
			for batch := range slices.Chunk(places, redisBatch) {
				r.renewBatch(ctx, node, leases, batch, ttl, results)
			}
		})
	}
	asking.Wait()
	return results
}

// renewBatch renews up to redisBatch locks of one node, those at the given places, by one message. The script goes with it in full,
// because one that Redis has forgotten cannot be sent again in the middle of a pipeline.
func (r *Redis) renewBatch(ctx context.Context, node string, leases []Lease, places []int, ttl time.Duration, results []Renewal) {
	cmds := make([]*redis.Cmd, len(places))
	err := r.call(ctx, node, func(ctx context.Context) error {
		_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for n, i := range places {
				cmds[n] = p.Eval(ctx, renewSource, redisKeys(leases[i].Key), mark(leases[i].Token), redisLife(ttl))
			}
			return nil
		})
		return err
	})
	for n, cmd := range cmds {
		i := places[n]
		switch {
		case cmd == nil: // it was not even tried
			results[i].Err = fmt.Errorf("renew the lock %s in Redis: %w", leases[i].Key, err)
		case cmd.Err() != nil:
			results[i].Err = fmt.Errorf("renew the lock %s in Redis: %w", leases[i].Key, cmd.Err())
		default:
			n, err := cmd.Int()
			results[i] = Renewal{Still: n == 1, Err: err}
		}
	}
}

// Release gives up a lock.
func (r *Redis) Release(ctx context.Context, key Key, token Token) error {
	err := r.call(ctx, r.node(ctx, key), func(ctx context.Context) error {
		return r.release.Run(ctx, r.client, redisKeys(key), mark(token)).Err()
	})
	if err != nil {
		return fmt.Errorf("release the lock %s in Redis: %w", key, err)
	}
	return nil
}

// call makes a call to a node in bounded time, or none while that is known not to answer.
func (r *Redis) call(ctx context.Context, node string, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fuse := r.fuse(node)
	if err := fuse.blown(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	err := do(bounded)
	if ctx.Err() == nil { // else it was the caller who ended it
		fuse.note(err)
	}
	return err
}
