package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// The depth of a queue must not matter: what a task costs with so many behind it, as a ratio to what it costs with few.
const (
	wantDepth    = 1.1
	shallow      = 1000
	deep         = 1_000_000
	depthTasks   = 10_000 // measured in each round
	depthRounds  = 3
	fillAtOnce   = 20_000
	shallowTimes = depthTasks / shallow
)

// measureDepth measures the processor time of manager, workers and Redis for each task, which the load of the machine changes
// less than how long it takes.
func measureDepth(ctx context.Context, out io.Writer, b *bench, million int) error {
	if err := b.admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	var few, many []float64
	queues := fmt.Sprintf("noop: {plugin: noop, min_workers: %d, max_workers: %d, slots: %d, buffer: 128, retention: 1h}", workers, workers, slots)
	err := b.withManager(ctx, queues, func(ctx context.Context) error {
		done := 0
		for range depthRounds {
			cost := time.Duration(0)
			for range shallowTimes {
				c, err := b.drainSome(ctx, &done, shallow, shallow)
				if err != nil {
					return err
				}
				cost += c
			}
			few = append(few, float64(cost)/depthTasks)
		}
		for range depthRounds {
			c, err := b.drainSome(ctx, &done, million, depthTasks)
			if err != nil {
				return err
			}
			many = append(many, float64(c)/depthTasks)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(few)
	slices.Sort(many)
	a, z := few[len(few)/2], many[len(many)/2]
	_, _ = fmt.Fprintf(out, "\nProcessor time for a task, of all processes: %s with %d queued, %s with %d queued: %.2f (wanted: at most %.1f)\n",
		time.Duration(a).Round(time.Microsecond), shallow, time.Duration(z).Round(time.Microsecond), million, z/a, wantDepth)
	return nil
}

// drainSome fills the paused queue up to so many tasks, lets some of them be done, and returns the processor time that took.
func (b *bench) drainSome(ctx context.Context, done *int, queued, tasks int) (time.Duration, error) {
	if err := b.pause(ctx); err != nil {
		return 0, err
	}
	if err := b.fillUp(ctx, queued); err != nil {
		return 0, err
	}
	before, err := b.workTime()
	if err != nil {
		return 0, err
	}
	if err := b.resume(ctx, *done+tasks); err != nil {
		return 0, err
	}
	after, err := b.workTime()
	if err != nil {
		return 0, err
	}
	if err := b.pause(ctx); err != nil {
		return 0, err
	}
	now, err := b.stands(ctx)
	if err != nil {
		return 0, err
	}
	// Until the pause is known some more are done: they count as well.
	cost := float64(after-before) * float64(tasks) / float64(max(tasks, now.atResume-*done))
	*done = now.processed
	return time.Duration(cost), nil
}

// standing is how far a queue is.
type standing struct{ atResume, processed int }

// stands waits until a paused queue stands still.
func (b *bench) stands(ctx context.Context) (standing, error) {
	keys := task.KeysOf(kind)
	s := standing{}
	for {
		n, err := b.admin.Get(ctx, keys.Processed()).Int()
		if err != nil {
			return s, err
		}
		if s.atResume == 0 {
			s.atResume = n
		}
		active, err := b.admin.LLen(ctx, keys.Active()).Result()
		if err != nil || active == 0 && n == s.processed {
			return s, err
		}
		s.processed = n
		if err := rest(ctx, 10*look); err != nil {
			return s, err
		}
	}
}

func (b *bench) pause(ctx context.Context) error {
	return b.admin.Set(ctx, task.KeysOf(kind).Paused(), 1, 0).Err()
}

// fillUp puts tasks into the queue until it has so many. Redis makes them itself from one message: only their keys differ.
func (b *bench) fillUp(ctx context.Context, n int) error {
	keys := task.KeysOf(kind)
	m := task.NewMessage(task.ID{Queue: kind, Key: strings.Repeat("k", keyLength)}, kind, []byte(`{"data":"`+strings.Repeat("x", payloadSize)+`"}`), time.Now())
	there, err := b.admin.LLen(ctx, keys.Pending()).Result()
	for from := int(there); from < n && err == nil; from += fillAtOnce {
		err = b.admin.Eval(ctx, `
local before, after = string.match(ARGV[1], '^(.-)' .. ARGV[2] .. '(.*)$')
for i = 1, tonumber(ARGV[3]) do
	local key = string.format('%026d', redis.call('INCR', KEYS[2]))
	redis.call('HSET', ARGV[4] .. key, 'msg', before .. key .. after, 'state', 'pending', 'pending_since', ARGV[5])
	redis.call('LPUSH', KEYS[1], key)
end`, []string{keys.Pending(), "bench:{" + kind + "}:keys"}, m.Encode(), strings.Repeat("k", keyLength), min(fillAtOnce, n-from), keys.TaskPrefix(), time.Now().UnixNano()).Err()
		if err != nil && err.Error() == "redis: nil" {
			err = nil
		}
	}
	return err
}

// keyLength is that of a key as clients make them.
const keyLength = 26

// workTime is how long this process, its workers and Redis were at work.
func (b *bench) workTime() (time.Duration, error) {
	children, err := childrenOf(os.Getpid())
	if err != nil {
		return 0, err
	}
	total := time.Duration(0)
	for _, pid := range append(children, os.Getpid()) {
		t, err := processorTime(pid)
		if err != nil {
			return 0, err
		}
		total += t
	}
	return total, nil
}
