package intake

import (
	"context"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// asynqMargin is how long before asynq's own deadline a run must have ended, so that asynq never ends a task by itself.
const asynqMargin = 2 * time.Second

// handle is asynq's handler: it makes the job, hands it down, and returns when its verdict has been carried out. It returns
// nil always: what asynq then does for the task is answered by the gateway, or refused by Redis because the task is no longer active.
func (l *lane) handle(ctx context.Context, t *asynq.Task) error {
	key, _ := asynq.GetTaskID(ctx)
	h := l.hand.get(key)
	if h == nil || h.message == nil {
		l.Log.Error("asynq handed over a task that was not taken", "queue", l.Queue, "task", key)
		return asynq.SkipRetry
	}
	j := job.New(task.ID{Queue: l.Queue, Key: key}, t.Type(), t.Payload())
	j.Counters, j.Submitted, j.Pending, j.Received = h.counters, h.message.Submitted(), h.pending, h.received
	if h.message.Deadline > 0 || h.message.Timeout > 0 {
		if deadline, ok := ctx.Deadline(); ok {
			j.Deadline = deadline.Add(-asynqMargin)
		}
	}
	l.hand.bind(h, j)
	l.offer(j)
	select {
	case v := <-j.Verdict():
		l.settle(h, v)
		return nil
	case <-ctx.Done():
		return l.lost(ctx, h, j)
	}
}

// offer hands a job down, or ends it when it can never be run.
func (l *lane) offer(j *job.Job) {
	refuse := func(f *fault.Fault) {
		l.Ender.End(j, job.Outcome{End: job.Faulted, Fault: f.AsPermanent(), Ended: time.Now()})
	}
	if kind := l.Kind(); kind != "" && j.Kind != kind {
		refuse(fault.New(fault.UnknownKind, "queue %s runs tasks of kind %q, this one is of kind %q", l.Queue, kind, j.Kind))
		return
	}
	if err := l.Check(j.Payload); err != nil {
		refuse(fault.New(fault.InvalidPayload, "%s", err.Error()))
		return
	}
	l.Dispatcher.Offer(j)
}

// settle waits until the verdict has been carried out or given up.
func (l *lane) settle(h *held, v job.Verdict) {
	done := make(chan struct{})
	l.settler.put(h, v, done)
	<-done
}

// lost ends the run of a task that asynq has taken away: its lease could not be kept, or another asynq client cancelled it.
func (l *lane) lost(ctx context.Context, h *held, j *job.Job) error {
	l.Log.Warn("a task was taken away while it ran; its run is ended", "task", j.ID, "reason", context.Cause(ctx))
	l.Dispatcher.Cancel(j)
	<-j.Verdict()
	l.hand.release(h)
	l.nudge()
	return ctx.Err()
}
