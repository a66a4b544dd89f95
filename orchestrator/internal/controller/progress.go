package controller

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// Progress takes a running job's progress. Only the latest is published, and none that comes after the end: a process that
// is killed may have reported something just before. A message that is on its way at the end may still cross it.
func (c *Controller) Progress(j *job.Job, p task.Progress) {
	c.mu.Lock()
	if c.over.has(runOf(j)) {
		c.mu.Unlock()
		return
	}
	c.latest[j] = p
	c.mu.Unlock()
	select {
	case c.progress <- struct{}{}:
	default:
	}
}

// publishEvery is the shortest time between two publishes of progress.
const publishEvery = 100 * time.Millisecond

// Run publishes progress until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	pause := time.NewTimer(publishEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.progress:
		}
		c.publish(ctx)
		pause.Reset(publishEvery)
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
	}
}

//go:embed progress.lua
var progressSource string

// publish sends what progress there is, one message a queue, and leaves it with the tasks. Progress that cannot be sent is dropped: the
// next replaces it.
func (c *Controller) publish(ctx context.Context) {
	c.mu.Lock()
	byQueue := map[string][]any{}
	now := time.Now()
	for j, p := range c.latest {
		data, err := task.EncodeEvents(&task.Event{ID: j.ID, State: task.Running, At: now, Attempts: j.Attempt(), Progress: &p})
		if err == nil {
			byQueue[j.ID.Queue] = append(byQueue[j.ID.Queue], j.ID.Key, data)
		}
	}
	clear(c.latest)
	c.mu.Unlock()
	const bound = time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for queue, events := range byQueue {
		keys := task.KeysOf(queue)
		args := append([]any{keys.TaskPrefix(), keys.EventsChannel()}, events...)
		if err := c.kept.Run(ctx, c.Redis, []string{keys.Active()}, args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
			c.Log.Debug("progress was not published", "queue", queue, "error", err)
			return
		}
	}
}

// run names one run of a task.
type run struct {
	id      task.ID
	attempt int
	at      int64 // when it was taken, in Unix nanoseconds: a task given back may be taken again as the same attempt
}

func runOf(j *job.Job) run { return run{id: j.ID, attempt: j.Attempt(), at: j.Received.UnixNano()} }

// remembered is how many runs that ended are remembered: more than can end while a report of progress is under way.
const remembered = 1024

// recent is the runs that ended last.
type recent struct {
	ring  []run
	next  int
	known map[run]struct{}
}

func (r *recent) add(n run) {
	if r.known == nil {
		r.known = make(map[run]struct{}, remembered)
	}
	if len(r.ring) < remembered {
		r.ring = append(r.ring, n)
	} else {
		delete(r.known, r.ring[r.next])
		r.ring[r.next] = n
		r.next = (r.next + 1) % remembered
	}
	r.known[n] = struct{}{}
}

func (r *recent) has(n run) bool {
	_, ok := r.known[n]
	return ok
}
