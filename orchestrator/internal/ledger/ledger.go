// Package ledger shows and changes what lies in Redis of a queue's tasks, for an operator: it lists them, takes dead letters
// back, drops what nobody needs any more, and pauses a queue for all managers.
//
// It owns the scripts for that, in the layout of asynq v0.26.0 (see task.Keys), so it works on tasks of foreign asynq clients
// too. It does not own tasks that a manager has taken: those it only lists, and never changes. Every change of a task is
// made by a script that looks first whether the task still is what the caller saw, so it races with nobody: a task that has
// moved meanwhile is looked at again.
//
// The handlers of the control API call it. It starts nothing and has nothing to stop. Each call to Redis is bounded by
// callTimeout; errors wrap client.ErrUnavailable when Redis did not answer.
package ledger

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// callTimeout bounds one call to Redis: an operator is told soon when it does not answer.
const callTimeout = 800 * time.Millisecond

// defaultRetention is how long the record of a dropped task is kept when its queue keeps none: who waits for the task must
// learn of its end.
const defaultRetention = time.Hour

//go:embed look.lua
var lookSource string

//go:embed ends.lua
var endsSource string

//go:embed retry.lua
var retrySource string

//go:embed drop.lua
var dropSource string

// Deps are what the ledger needs.
type Deps struct {
	Redis redis.UniversalClient
	// Manager is this manager's name, for the records of dropped tasks.
	Manager string
	// Retention is how long records of a queue's tasks are kept; 0 when none are, or the queue is not this manager's.
	Retention func(queue string) time.Duration
	// Known completes what Redis says of a task that some manager has taken with what this one knows.
	Known func(*task.Task)
}

// Ledger is safe for concurrent use.
type Ledger struct {
	Deps
	look, ends, retry, drop *redis.Script
	timeout                 time.Duration // of one call to Redis
}

// New returns a ledger.
func New(d Deps) *Ledger {
	return &Ledger{
		Deps: d, timeout: callTimeout, look: broker.Script(d.Redis, lookSource), ends: broker.Script(d.Redis, endsSource),
		retry: broker.Script(d.Redis, retrySource), drop: broker.Script(d.Redis, dropSource),
	}
}

// Exists reports whether any client or manager has ever named the queue in Redis.
func (l *Ledger) Exists(ctx context.Context, queue string) (bool, error) {
	return ask(ctx, l, func(ctx context.Context) (bool, error) {
		return l.Redis.SIsMember(ctx, task.AsynqQueuesKey, queue).Result()
	})
}

// Pause keeps all managers, and asynq's own servers, from taking tasks of the queue.
func (l *Ledger) Pause(ctx context.Context, queue string) error {
	_, err := ask(ctx, l, func(ctx context.Context) (string, error) {
		return l.Redis.SetArgs(ctx, task.KeysOf(queue).Paused(), time.Now().Unix(), redis.SetArgs{Mode: "NX"}).Result()
	})
	return err
}

// Resume lets them take tasks again, and wakes the managers.
func (l *Ledger) Resume(ctx context.Context, queue string) error {
	keys := task.KeysOf(queue)
	_, err := ask(ctx, l, func(ctx context.Context) (int64, error) {
		n, err := l.Redis.Del(ctx, keys.Paused()).Result()
		if err == nil {
			err = broker.Publish(ctx, l.Redis, keys.WakeChannel(), "")
		}
		return n, err
	})
	return err
}

// ask makes one call to Redis, bounded by callTimeout. A missing key is no error.
func ask[T any](ctx context.Context, l *Ledger, call func(context.Context) (T, error)) (T, error) {
	bounded, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	value, err := call(bounded)
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		return value, nil
	case ctx.Err() != nil:
		return value, ctx.Err()
	case bounded.Err() != nil:
		return value, fmt.Errorf("%w: Redis has not answered within %s; this needs it", client.ErrUnavailable, l.timeout)
	default:
		return value, fmt.Errorf("%w: Redis: %w", client.ErrUnavailable, err)
	}
}
