package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Deps are what the controller needs.
type Deps struct {
	Manager  string // name, for the records
	Redis    redis.UniversalClient
	Settings func(queue string) settings.Queue // as they are now; must not block
	Log      *slog.Logger
}

// Controller decides the ends of jobs and tells of them.
type Controller struct {
	Deps
	progress chan struct{} // has an element when there is some to publish

	mu     sync.Mutex
	latest map[*job.Job]task.Progress
	counts map[string]*Counts
	totals Totals
}

// Totals are how many jobs ended and how many were put back, in all queues, since the manager's start.
type Totals struct {
	Ended, Returned uint64
}

// Counts are how many runs ended how in a queue, since the manager's start.
type Counts struct {
	Completed, Failed, Killed uint64
}

// New returns a controller.
func New(d Deps) *Controller {
	return &Controller{Deps: d, progress: make(chan struct{}, 1), latest: map[*job.Job]task.Progress{}, counts: map[string]*Counts{}}
}

// End decides what becomes of a job. A second end of the same job changes nothing.
func (c *Controller) End(j *job.Job, o job.Outcome) {
	if o.End == job.Succeeded && len(o.Result) > task.MaxResult {
		o.End, o.Result = job.Faulted, nil
		o.Fault = fault.New(fault.TooLarge, "the result has more than the %d bytes that are allowed: store it and return where it is", task.MaxResult).AsPermanent()
	}
	q := c.Settings(j.ID.Queue)
	v := judge(j, o, q, randomJitter())
	c.describe(j, o, q, &v)
	if !j.Decide(v) {
		return
	}
	c.count(j, v)
	if v.State == task.Dead || v.State == task.Quarantined {
		c.Log.Warn("task ended badly for good", "task", j.ID, "state", v.State, "attempts", j.Attempt(), "reason", v.Reason)
	}
}

// describe adds the record and the event to a verdict.
func (c *Controller) describe(j *job.Job, o job.Outcome, q settings.Queue, v *job.Verdict) {
	if o.End == job.Returned {
		return // nothing happened to it
	}
	v.Event = &task.Event{ID: j.ID, State: v.State, At: o.Ended, Attempts: j.Attempt()}
	if o.Fault != nil {
		v.Event.Fault = o.Fault.Kind
	}
	if !v.State.Ended() {
		return
	}
	v.KeepFor = q.Retention
	v.Record = &task.Task{
		ID: j.ID, Kind: j.Kind, State: v.State, Attempts: j.Attempt(), Counters: v.Counters,
		Result: o.Result, Fault: o.Fault, Submitted: j.Submitted, Started: o.Started, Ended: o.Ended, Manager: c.Manager,
	}
	if !o.Started.IsZero() {
		v.Record.Queued = max(0, o.Started.Sub(j.Pending))
		v.Record.Run = o.Ended.Sub(o.Started)
	} else {
		v.Record.Queued = max(0, o.Ended.Sub(j.Pending))
	}
	if v.Record.Submitted.IsZero() {
		v.Record.Submitted = j.Pending
	}
}

func (c *Controller) count(j *job.Job, v job.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.latest, j)
	switch {
	case v.State.Ended():
		c.totals.Ended++
	case v.Move == job.GiveBack:
		c.totals.Returned++
	}
	n := c.counts[j.ID.Queue]
	if n == nil {
		n = &Counts{}
		c.counts[j.ID.Queue] = n
	}
	switch {
	case v.State == task.Completed:
		n.Completed++
	case v.Counters.Kills > j.Counters.Kills:
		n.Killed++
	case v.Counters.Failures > j.Counters.Failures:
		n.Failed++
	}
}

// Counts returns the counts of a queue.
func (c *Controller) Counts(queue string) Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.counts[queue]; n != nil {
		return *n
	}
	return Counts{}
}

// Totals returns the totals.
func (c *Controller) Totals() Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.totals
}

// WorkerEnded takes note of the end of a process.
func (c *Controller) WorkerEnded(queue string, exit job.Exit) {
	level := slog.LevelInfo
	if exit.Reason.Blames() || exit.Reason == job.ExitPanic {
		level = slog.LevelWarn
	}
	c.Log.Log(context.Background(), level, exit.String(), "queue", queue, "age", exit.Age.Round(time.Millisecond))
}

// Progress takes a running job's progress. Only the latest is published.
func (c *Controller) Progress(j *job.Job, p task.Progress) {
	c.mu.Lock()
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

// publish sends what progress there is, one message a queue. Progress that cannot be sent is dropped: the next replaces it.
func (c *Controller) publish(ctx context.Context) {
	c.mu.Lock()
	byQueue := map[string][]*task.Event{}
	now := time.Now()
	for j, p := range c.latest {
		byQueue[j.ID.Queue] = append(byQueue[j.ID.Queue], &task.Event{ID: j.ID, State: task.Running, At: now, Attempts: j.Attempt(), Progress: &p})
	}
	clear(c.latest)
	c.mu.Unlock()
	const bound = time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for queue, events := range byQueue {
		data, err := task.EncodeEvents(events...)
		if err != nil {
			continue
		}
		if err := c.Redis.Publish(ctx, task.KeysOf(queue).EventsChannel(), data).Err(); err != nil {
			c.Log.Debug("progress was not published", "queue", queue, "error", err)
			return
		}
	}
}
