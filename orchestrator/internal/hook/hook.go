// Package hook tells of dead letters: for each task that dies in a queue with on_dead it puts a task into the queue named there.
//
// What is to be told lies in a list in Redis beside the dead letter, written in the same moment (intake/settle.lua), and leaves it
// when the task has been submitted: a death is told at least once, whatever dies in between, and at most once more for each manager
// that serves the queue. As a task it has all that tasks have: retries with pauses, limits, a history; whoever wants a web page to be
// called or a mail to be sent writes a worker for it, so that a slow or hostile address costs the manager nothing.
//
// Package orchestrator makes it. Run asks for the lists of this manager's queues until its context ends.
package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	// every is how often the lists are looked at: people read of deaths, so a second does.
	every = time.Second
	// batch is how many deaths of a queue are told in one round; each may be as large as a payload.
	batch = 100
	// mostFailures is how many deaths that cannot be told may stand before one that can: those may be for another queue.
	mostFailures = 10
	// callTimeout bounds one call to Redis and one submit.
	callTimeout = 5 * time.Second
	// complainEvery is how often the log says that a queue cannot be told.
	complainEvery = time.Minute
)

// Deps are what the relay needs.
type Deps struct {
	Redis  redis.UniversalClient
	Queues func() []string // that this manager serves
	// Submit puts a task into a queue; its errors are those of package client.
	Submit func(ctx context.Context, queue string, payload []byte) error
	Log    *slog.Logger
}

// Relay hands deaths on.
type Relay struct {
	Deps
	every      time.Duration
	complained time.Time
}

// New returns a relay that has started nothing.
func New(d Deps) *Relay { return &Relay{Deps: d, every: every} }

// Run tells of deaths until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	ticker := time.NewTicker(r.every)
	defer ticker.Stop()
	for {
		for _, queue := range r.Queues() {
			for more := true; more && ctx.Err() == nil; {
				more = r.tell(ctx, queue)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// tell hands on the oldest deaths of a queue, and reports whether there are more and all went well.
func (r *Relay) tell(ctx context.Context, queue string) (more bool) {
	list := task.KeysOf(queue).Deaths()
	told := 0
	for place := int64(-1); place >= -mostFailures; {
		entry, err := r.at(ctx, list, place)
		if err != nil {
			return false // when Redis does not answer, all else says so
		}
		if entry == "" {
			return false
		}
		if err := r.handOn(ctx, entry); err != nil {
			r.complain(queue, err)
			place-- // those behind it may be for another queue
			continue
		}
		if err := r.forget(ctx, list, entry); err != nil {
			return false // it is told again
		}
		if told++; told == batch {
			return true
		}
	}
	return false
}

// at is an entry of a list, counted from its end; empty for none.
func (r *Relay) at(ctx context.Context, list string, place int64) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	entry, err := r.Redis.LIndex(ctx, list, place).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return entry, err
}

// forget takes an entry off its list.
func (r *Relay) forget(ctx context.Context, list, entry string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.Redis.LRem(ctx, list, -1, entry).Err()
}

// handOn submits the task of an entry. What can never be submitted is given up, with a line in the log; the dead letter stays.
func (r *Relay) handOn(ctx context.Context, entry string) error {
	var h job.Hook
	if err := json.Unmarshal([]byte(entry), &h); err != nil {
		r.Log.Error("a death cannot be told: what lies in Redis of it cannot be read", "error", err)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := r.Submit(ctx, h.Queue, h.Payload)
	if errors.Is(err, client.ErrInvalidPayload) {
		r.Log.Error("a death cannot be told: the plugin of the queue in on_dead does not take {\"dead_letter\": TASK}", "queue", h.Queue, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("put a task into queue %s of on_dead: %w", h.Queue, err)
	}
	return nil
}

// complain says now and then that deaths wait to be told.
func (r *Relay) complain(queue string, err error) {
	if now := time.Now(); now.Sub(r.complained) >= complainEvery {
		r.complained = now
		r.Log.Warn("deaths of tasks wait to be told; it is tried again", "queue", queue, "error", err)
	}
}
