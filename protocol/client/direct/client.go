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
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/drover-jobs/drover/protocol/client"
)

// Client submits and follows tasks straight in Redis. It is safe for concurrent use.
type Client struct {
	rdb    redis.UniversalClient
	owned  bool
	log    *slog.Logger
	queues entries
	events *hub

	closing chan struct{} // closed by Close
	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup // calls to Redis in progress, those whose caller has gone included
}

var _ client.Client = (*Client)(nil)

// New returns a client that uses rdb and leaves it open when it is closed. A call outlasts its context in the
// background for as long as rdb's own time-outs allow; set ContextTimeoutEnabled to keep that short.
func New(rdb redis.UniversalClient, log *slog.Logger) *Client {
	return &Client{
		rdb: rdb, log: log, closing: make(chan struct{}),
		queues: entries{known: map[string]*queueInfo{}},
		events: newHub(rdb, log),
	}
}

// Open returns a client for the Redis at an address such as redis://:password@127.0.0.1:6379/0, rediss://... or
// unix://:password@/run/redis.sock. It connects when it is first used; Close closes the connections. For Sentinel and
// Cluster make the redis client yourself and call New.
func Open(address string, log *slog.Logger) (*Client, error) {
	options, err := redis.ParseURL(address)
	if err != nil {
		// The parser's text repeats the address, and with it the password.
		return nil, errors.New("open a client: the address of Redis is not understood: write redis://:password@host:port/0 or unix://:password@/path")
	}
	options.ContextTimeoutEnabled = true
	options.DialerRetries = 1 // a command is tried again as a whole
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	c := New(redis.NewClient(options), log)
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
