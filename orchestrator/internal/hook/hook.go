// Package hook tells of dead letters: for each task that dies in a queue with on_dead it puts a task into the queue named there.
//
// What is to be told lies in a list in Redis beside the dead letter, written in the same moment (intake/settle.lua), and leaves it
// when the task has been submitted: a death is told at least once, whatever dies in between, and at most once more for each manager
// that serves the queue. It goes to where on_dead points when it is told, waits while that queue is not there or refuses it, and is
// dropped when on_dead is switched off meanwhile. As a task it has all that tasks have: retries with pauses, limits, a history; whoever wants a web page to be
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
	"slices"
	"sync"
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
	// mostRefused is after how many deaths that the other queue's schema refuses a round ends.
	mostRefused = 10
	// callTimeout bounds one call to Redis and one submit.
	callTimeout = 5 * time.Second
	// complainEvery is how often the log says that a queue cannot be told.
	complainEvery = time.Minute
)

// Deps are what the relay needs.
type Deps struct {
	Redis  redis.UniversalClient
	Queues func() []string // that this manager serves
	// OnDead is where the deaths of a queue are told as its settings are now; empty for nowhere, and for a queue that has gone.
	OnDead func(queue string) string
	// Submit puts a task into a queue; its errors are those of package client.
	Submit func(ctx context.Context, queue string, payload []byte) error
	Log    *slog.Logger
}

// Relay hands deaths on.
type Relay struct {
	Deps
	every  time.Duration
	wanted map[string]bool // queues that had an on_dead since the start; of Run alone

	mu         sync.Mutex
	complained time.Time
	problems   map[string]error // by queue
}

// New returns a relay that has started nothing.
func New(d Deps) *Relay {
	return &Relay{Deps: d, every: every, wanted: map[string]bool{}, problems: map[string]error{}}
}

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

// tell hands on the oldest deaths of a queue to where its on_dead points now, and reports whether there are more and all went well.
func (r *Relay) tell(ctx context.Context, queue string) (more bool) {
	list := task.KeysOf(queue).Deaths()
	if r.OnDead(queue) != "" {
		r.wanted[queue] = true
	}
	for told, refused := 0, 0; told < batch; {
		entry, err := r.oldest(ctx, list)
		if err != nil {
			return false // when Redis does not answer, all else says so
		}
		if entry == "" {
			if refused == 0 {
				r.note(queue, nil)
			}
			return false
		}
		to := r.OnDead(queue)
		if to == "" && r.wanted[queue] {
			if !slices.Contains(r.Queues(), queue) {
				return false // the queue has gone, its on_dead was not switched off
			}
			// It was unset here; where it never was set, another manager may want to tell of these.
			r.wanted[queue] = false
			r.drop(ctx, queue, list)
			return false
		}
		err = r.handOn(ctx, to, entry)
		r.note(queue, err)
		if errors.Is(err, client.ErrInvalidPayload) {
			// Others may fit: it goes behind them, and waits for another schema or another on_dead.
			if refused++; refused == mostRefused || r.putBehind(ctx, list) != nil {
				return false
			}
			continue
		}
		if err != nil {
			return false
		}
		if err := r.forget(ctx, list, entry); err != nil {
			return false // it is told again
		}
		told++
	}
	return true
}

// drop throws away what waits of a queue whose deaths nobody wants to know of any more.
func (r *Relay) drop(ctx context.Context, queue, list string) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var n *redis.IntCmd
	_, err := r.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		n = pipe.LLen(ctx, list)
		pipe.Del(ctx, list)
		return nil
	})
	if err == nil && n.Val() > 0 {
		r.Log.Warn("deaths that waited are not told: on_dead of their queue is off now; the dead letters stay", "queue", queue, "deaths", n.Val())
	}
	r.note(queue, nil)
}

// putBehind moves the oldest entry of a list behind the others.
func (r *Relay) putBehind(ctx context.Context, list string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.Redis.RPopLPush(ctx, list, list).Err()
}

// note takes down why the deaths of a queue wait, and says so now and then.
func (r *Relay) note(queue string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.problems, queue)
		return
	}
	r.problems[queue] = err
	if now := time.Now(); now.Sub(r.complained) >= complainEvery {
		r.complained = now
		r.Log.Warn("deaths of tasks wait to be told; it is tried again", "queue", queue, "error", err)
	}
}

// Problem says why the deaths of a queue wait; nil when they do not, as far as this manager has tried.
func (r *Relay) Problem(queue string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problems[queue]
}

// oldest is the entry at the end of a list; empty for none.
func (r *Relay) oldest(ctx context.Context, list string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	entry, err := r.Redis.LIndex(ctx, list, -1).Result()
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

// handOn submits the task of an entry. What cannot be read is given up, with a line in the log; the dead letter stays.
func (r *Relay) handOn(ctx context.Context, to, entry string) error {
	var h job.Hook
	if err := json.Unmarshal([]byte(entry), &h); err != nil {
		r.Log.Error("a death cannot be told: what lies in Redis of it cannot be read", "error", err)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if to == "" {
		to = h.Queue
	}
	if err := r.Submit(ctx, to, h.Payload); err != nil {
		return fmt.Errorf("put a task into queue %s of on_dead: %w", to, err)
	}
	return nil
}
