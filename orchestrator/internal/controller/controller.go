package controller

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/broker"
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
	told     *rate.Limiter // of lines about failures
	kept     *redis.Script // progress.lua

	mu     sync.Mutex
	latest map[*job.Job]task.Progress
	over   recent
	counts map[string]*Counts
	timers map[string]*timer
}

// Counts are how many runs ended how in a queue, since the manager's start.
type Counts struct {
	Completed, Failed, Killed uint64
}

// New returns a controller.
func New(d Deps) *Controller {
	return &Controller{Deps: d, progress: make(chan struct{}, 1), told: rate.NewLimiter(toldPerSecond, toldAtOnce), kept: broker.Script(d.Redis, progressSource), latest: map[*job.Job]task.Progress{}, counts: map[string]*Counts{}, timers: map[string]*timer{}}
}

// End decides what becomes of a job. A second end of the same job changes nothing.
func (c *Controller) End(j *job.Job, o job.Outcome) {
	o = sound(o)
	q := c.Settings(j.ID.Queue)
	v := judge(j, o, q, randomJitter())
	c.describe(j, o, q, &v)
	if !j.Decide(v) {
		return
	}
	c.count(j, o, v)
	c.tell(j, o, v)
}

// Failed runs are told in the log, but no more of them than a person reads; the counts and the records have them all.
const (
	toldPerSecond = 5
	toldAtOnce    = 20
)

// tell writes what failed to the log.
func (c *Controller) tell(j *job.Job, o job.Outcome, v job.Verdict) {
	if f := o.Fault; f != nil && f.Detail != "" {
		c.Log.Debug("what there is of a bad end", "task", j.ID, "attempt", j.Attempt(), "fault", f.Kind, "detail", f.Detail)
	}
	switch {
	case v.State != task.Dead && v.State != task.Quarantined && v.State != task.Failed:
	case !c.told.Allow():
	case v.State == task.Failed:
		c.Log.Warn("a run failed; the task is tried again", "task", j.ID, "attempt", j.Attempt(), "at", v.RetryAt.Format(time.TimeOnly), "reason", v.Reason)
	default:
		c.Log.Warn("task ended badly for good", "task", j.ID, "state", v.State, "attempts", v.Record.Attempts, "reason", v.Reason)
	}
}

// sound returns an outcome that can be stored: a result that cannot is a fault, and a failure says why.
func sound(o job.Outcome) job.Outcome {
	if o.Ended.IsZero() {
		o.Ended = time.Now()
	}
	switch o.End {
	case job.Succeeded:
		f := unfit(o.Result)
		if f == nil {
			return o
		}
		o.End, o.Result, o.Fault = job.Faulted, nil, f.AsPermanent()
	case job.Faulted:
		o = faulted(o)
	case job.Cancelled, job.Expired, job.Returned, job.Interrupted:
	default:
		if o.Fault == nil {
			o.Fault = fault.New(fault.Crash, "its process ended, and nobody said why")
		}
	}
	return o
}

// faulted is the outcome of a run that its worker says failed: a kill when the worker says that a process which it had started
// for the task died of it (plugins/exec), and never without a reason.
func faulted(o job.Outcome) job.Outcome {
	switch {
	case o.Fault == nil:
		o.Fault = fault.New(fault.Failed, "it failed, and nobody said why")
	case o.Fault.Kind == fault.Crash:
		o.End = job.Killed
	}
	return o
}

// unfit says what is wrong with a result; nil when nothing is.
func unfit(result []byte) *fault.Fault {
	switch {
	case len(result) > task.MaxResult:
		return fault.New(fault.TooLarge, "the result has %d bytes, more than the %d that are allowed: store it and return where it is", len(result), task.MaxResult)
	case len(result) > 0 && !json.Valid(result):
		return fault.New(fault.Protocol, "the result is not JSON: the worker must return a JSON value")
	default:
		return nil
	}
}

// attempts is how many runs of a job's task have begun.
func attempts(j *job.Job, o job.Outcome) int {
	if o.Started.IsZero() && (o.End == job.Cancelled || o.End == job.Succeeded || o.End == job.Expired) {
		return j.Attempt() - 1
	}
	return j.Attempt()
}

// describe adds the record and the event to a verdict.
func (c *Controller) describe(j *job.Job, o job.Outcome, q settings.Queue, v *job.Verdict) {
	if o.End == job.Returned {
		return // nothing happened to it
	}
	if a, ok := attemptOf(j, o, c.Manager); ok {
		v.History = task.Remember(j.History, a)
	}
	v.Event = &task.Event{ID: j.ID, State: v.State, At: o.Ended, Attempts: attempts(j, o), RunAt: v.RetryAt}
	if o.Fault != nil {
		v.Event.Fault, v.Event.Message = o.Fault.Kind, o.Fault.Message
	}
	if !v.State.Ended() {
		return
	}
	v.KeepFor = q.Retention
	if j.KeepRecord != nil {
		v.KeepFor = *j.KeepRecord
	}
	v.Record = &task.Task{
		ID: j.ID, Kind: j.Kind, State: v.State, Attempts: attempts(j, o), Counters: v.Counters,
		Result: o.Result, Fault: o.Fault, Submitted: j.Submitted, Started: o.Started, Ended: o.Ended, Manager: c.Manager,
		History: v.History,
	}
	if !o.Started.IsZero() {
		v.Record.Queued = max(0, o.Started.Sub(j.Pending))
		v.Record.Run = max(0, o.Ended.Sub(o.Started))
	} else {
		v.Record.Queued = max(0, o.Ended.Sub(j.Pending))
	}
	if v.Record.Submitted.IsZero() {
		v.Record.Submitted = j.Pending
	}
	if v.Move == job.Bury {
		v.Hook = hookOf(j, v.Record, q.OnDead)
	}
}

func (c *Controller) count(j *job.Job, o job.Outcome, v job.Verdict) {
	ran, timed := timedOf(j, o)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.latest, j)
	c.over.add(runOf(j))
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
	if timed {
		c.timer(j.ID.Queue).add(ran)
	}
}

// timer returns that of a queue. The caller holds mu.
func (c *Controller) timer(queue string) *timer {
	t := c.timers[queue]
	if t == nil {
		t = &timer{}
		c.timers[queue] = t
	}
	return t
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

// WorkerStarted takes note of the start of a process.
func (c *Controller) WorkerStarted(queue string, worker uint64, pid int) {
	c.Log.Debug("a worker has started", "queue", queue, "worker", worker, "pid", pid)
}

// WorkerEnded takes note of the end of a process. Of a start that failed the pool has told.
func (c *Controller) WorkerEnded(queue string, exit job.Exit) {
	if exit.Reason == job.ExitFailedStart {
		return
	}
	level := slog.LevelInfo
	if exit.Reason.Blames() || exit.Reason == job.ExitPanic {
		level = slog.LevelWarn
	}
	c.Log.Log(context.Background(), level, exit.String(), "queue", queue, "age", exit.Age.Round(time.Millisecond))
}
