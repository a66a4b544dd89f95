// Package direct is the client of Drover that speaks straight to Redis: it submits and cancels even while every manager
// is down. It keeps the promises of the interface in package client.
//
// It owns the scripts that enqueue, look at and cancel tasks in the layout of asynq v0.26.0 (see task.Keys), and one
// connection for events, shared by all subscriptions. It does not own what happens to a task once a manager has taken
// it, nor the terminal records, which managers write; only a task that it cancels before a manager took it, it ends itself.
//
// Applications call it, and the manager behind its API. It starts nothing before the first subscription; Close ends
// every call in progress and returns when all its goroutines are gone. A call never outlasts its context, even while
// Redis hangs.
package direct

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/client"
)

// Client submits and follows tasks straight in Redis. It is safe for concurrent use.
type Client struct {
	rdb      redis.UniversalClient
	owned    bool
	replicas int // that must have a task before its submit is answered
	log      *slog.Logger
	scripts  scripts
	queues   entries
	events   *hub
	looks    chan struct{} // holds one for each look of a subscription that is under way: see maxLooks

	closing chan struct{} // closed by Close
	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup // calls to Redis in progress, those whose caller has gone included
}

var _ client.Client = (*Client)(nil)

// New returns a client that uses rdb and leaves it open when it is closed. A call outlasts its context in the
// background for as long as rdb's own time-outs allow; set ContextTimeoutEnabled to keep that short.
func New(rdb redis.UniversalClient, log *slog.Logger, options ...Option) *Client {
	c := &Client{
		rdb: rdb, log: log, closing: make(chan struct{}), scripts: scriptsFor(rdb),
		queues: entries{known: map[string]*queueInfo{}},
		events: newHub(rdb, log),
		looks:  make(chan struct{}, maxLooks),
	}
	for _, o := range options {
		o(c)
	}
	return c
}

// Option is an option of New.
type Option func(*Client)

// WaitReplicas makes a submit wait until that many replicas have the task, at most a second: what was accepted then outlives the death of
// the primary, provided that one of those replicas takes over. A submit that fewer confirm is ErrUnavailable: the task may be there; the same
// work submitted again joins it.
func WaitReplicas(n int) Option { return func(c *Client) { c.replicas = n } }

// Open returns a client for the Redis at an address. It connects when it is first used; Close closes the connections. The forms are
//
//	redis://:password@host:6379/0             one server; rediss:// for TLS
//	unix://:password@/run/redis.sock?db=0     the same by its socket
//	redis-sentinel://:password@host1:26379,host2:26379/0?master=NAME
//	redis-cluster://:password@host1:6379,host2:6379
//
// and rediss-sentinel:// and rediss-cluster:// for TLS. Special characters of a password are written as %XX. The password of the sentinels
// is the parameter sentinel_password; the parameter wait_replicas is WaitReplicas.
func Open(address string, log *slog.Logger) (*Client, error) {
	options, err := broker.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("open a client: the address of Redis %w: write %s", err, broker.Allowed)
	}
	if options.Single != nil {
		options.Single.DialerRetries = 1 // a command is tried again as a whole
	}
	c := New(options.Open(), log, WaitReplicas(options.WaitReplicas))
	c.owned = true
	return c, nil
}

// Close ends every call in progress with ErrClosed, ends the subscriptions and returns when nothing of the client is left.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	close(c.closing)
	c.mu.Unlock()
	c.events.close()
	var err error
	if c.owned {
		err = c.rdb.Close() // before the wait: it ends calls that hang on a dead connection
	}
	c.calls.Wait()
	if err != nil {
		return fmt.Errorf("close the connections to Redis: %w", err)
	}
	return nil
}

// begin counts one more call to Redis, unless the client is closed.
func (c *Client) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.calls.Add(1)
	return true
}

// errRedis is in every error that came from Redis or the way to it.
var errRedis = errors.New("Redis")

// ask runs do and returns when it has answered, ctx has ended or the client is closed. do gets a goroutine of its own,
// because the redis client does not watch a context while it reads. The error is ctx.Err(), ErrClosed or ErrUnavailable.
func ask[T any](ctx context.Context, c *Client, do func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if !c.begin() {
		return none, client.ErrClosed
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		defer c.calls.Done()
		value, err := do(inner)
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		if a.err == nil {
			return a.value, nil
		}
		if err := ctx.Err(); err != nil {
			return none, err
		}
		if c.isClosed() {
			return none, client.ErrClosed
		}
		return none, fmt.Errorf("%w: %w: %w", client.ErrUnavailable, errRedis, a.err)
	case <-ctx.Done():
		return none, ctx.Err()
	case <-c.closing:
		return none, client.ErrClosed
	}
}

func (c *Client) isClosed() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}
