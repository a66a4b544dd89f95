// Package rescue puts tasks of managers that died back into their queues.
//
// A living manager renews the leases of the tasks it holds every five seconds. A lease that has not moved for two of
// those beats has no owner, and its task goes to the head of its queue at no cost but a count of losses; so does an active
// task that never got a lease, which asynq itself never looks at again (asynq#1051). asynq alone would take one to two
// minutes and count a retry.
//
// The age of a lease is measured by watching it, not by comparing its time with the local clock, so managers' clocks
// may differ. Any number of managers may watch the same queue: the move is one script that makes sure that the lease is still the
// one that was watched. A manager that was frozen and wakes up finds the token of its task gone, and ends the run (package intake).
//
// Run(ctx) watches until ctx ends. The package owns no process and does not know what this manager holds: its own leases move.
package rescue

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	// abandonedAfter is how long a lease must not have moved: two beats, and a little for a busy machine.
	abandonedAfter = 11 * time.Second
	// lookEvery is how often the leases are looked at. A lease is seen to have moved up to one look later, and to stand still up
	// to one look after abandonedAfter: under 15 seconds in all.
	lookEvery = time.Second
	// callTimeout bounds one call to Redis. It is short, because a stop waits for the call in progress.
	callTimeout = time.Second
	// batch is how many tasks one script puts back at most.
	batch = 128
	// maxHistory bounds the history to which a loss is added, in bytes: eight runs with their last lines of output fit.
	maxHistory = 32 << 10
)

//go:embed watch.lua
var watchSource string

//go:embed rescue.lua
var rescueSource string

// Deps are what the rescue needs.
type Deps struct {
	Redis  redis.UniversalClient
	Queues func() []string // this manager's, as they are now
	// Alone is true when no other manager can use this Redis: then whatever is active when Run begins has no owner, and is
	// put back at once. Run must then begin before anything is taken.
	Alone bool
	Log   *slog.Logger
}

// Rescue watches the leases of a manager's queues.
type Rescue struct {
	Deps
	watch, rescue *redis.Script
	seen          map[string]map[string]sighting // by queue and task key
	after         time.Duration
	every         time.Duration
}

// sighting is a lease as it was seen first.
type sighting struct {
	lease string // the score as Redis writes it; empty for none
	since time.Time
}

// New returns a rescue that has looked at nothing yet.
func New(d Deps) *Rescue {
	return &Rescue{
		Deps: d, watch: broker.Script(d.Redis, watchSource), rescue: broker.Script(d.Redis, rescueSource),
		seen: map[string]map[string]sighting{}, after: abandonedAfter, every: lookEvery,
	}
}

// First puts back, when this manager is alone, everything that is active. Call it before the first task is taken. An error
// says that Redis does not answer; Run finds what is left.
func (r *Rescue) First(ctx context.Context) error {
	if !r.Alone {
		return nil
	}
	for _, queue := range r.Queues() {
		leases, err := r.leases(ctx, queue)
		if err != nil {
			return err
		}
		if err := r.putBack(ctx, queue, leases); err != nil {
			return err
		}
	}
	return nil
}

// Run watches until ctx ends.
func (r *Rescue) Run(ctx context.Context) error {
	ticker := time.NewTicker(r.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		queues := r.Queues()
		maps.DeleteFunc(r.seen, func(queue string, _ map[string]sighting) bool { return !slices.Contains(queues, queue) })
		for _, queue := range queues {
			if err := r.look(ctx, queue, time.Now()); err != nil {
				r.Log.Debug("leases could not be looked at", "queue", queue, "error", err)
				clear(r.seen) // nothing was seen to stand still meanwhile
				break
			}
		}
	}
}

// look compares the leases with what was seen before, and puts back what has not moved for too long.
func (r *Rescue) look(ctx context.Context, queue string, now time.Time) error {
	leases, err := r.leases(ctx, queue)
	if err != nil {
		return err
	}
	before, seen := r.seen[queue], make(map[string]sighting, len(leases))
	abandoned := map[string]string{}
	for key, lease := range leases {
		s, known := before[key]
		if !known || s.lease != lease {
			s = sighting{lease: lease, since: now}
		}
		if now.Sub(s.since) >= r.after {
			abandoned[key] = lease
			continue
		}
		seen[key] = s
	}
	r.seen[queue] = seen
	return r.putBack(ctx, queue, abandoned)
}

// leases returns the lease of each active task of a queue; an empty text for one without.
func (r *Rescue) leases(ctx context.Context, queue string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	keys := task.KeysOf(queue)
	values, err := r.watch.Run(ctx, r.Redis, []string{keys.Active(), keys.Lease()}).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("look at the leases of queue %s: %w", queue, err)
	}
	leases := make(map[string]string, len(values)/2)
	for i := 0; i+1 < len(values); i += 2 {
		leases[values[i]] = values[i+1]
	}
	return leases, nil
}

// putBack puts tasks back that still have the lease that was watched.
func (r *Rescue) putBack(ctx context.Context, queue string, abandoned map[string]string) error {
	const fixed = 4
	now := time.Now()
	lost, err := task.EncodeHistory([]task.Attempt{{Started: now, End: task.EndLost, Fault: fault.Lost, Message: "its manager died while it had the task"}})
	if err != nil {
		return fmt.Errorf("write down a loss: %w", err)
	}
	args := make([]any, 0, fixed+2*batch)
	begin := func() []any {
		return append(args[:0], task.KeysOf(queue).TaskPrefix(), now.UnixNano(), lost, maxHistory)
	}
	args = begin()
	for key, lease := range abandoned {
		args = append(args, key, lease)
		if len(args) >= fixed+2*batch {
			if err := r.putBackBatch(ctx, queue, args); err != nil {
				return err
			}
			args = begin()
		}
	}
	if len(args) > fixed {
		return r.putBackBatch(ctx, queue, args)
	}
	return nil
}

func (r *Rescue) putBackBatch(ctx context.Context, queue string, args []any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	keys := task.KeysOf(queue)
	n, err := r.rescue.Run(ctx, r.Redis, []string{keys.Active(), keys.Lease(), keys.Pending(), keys.WakeChannel()}, args...).Int()
	if err != nil {
		return fmt.Errorf("put back the tasks of a dead manager in queue %s: %w", queue, err)
	}
	if n > 0 {
		r.Log.Warn("tasks of a manager that died were put back", "queue", queue, "tasks", n)
	}
	return nil
}
