package intake

import (
	"context"
	"strconv"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// handDown offers a task's job to the pool, or ends it when it can never be run. The puller does it itself, and not asynq's
// handlers, because those come in any order.
func (l *lane) handDown(h *held) {
	now := time.Now()
	if d := h.job.Deadline; !d.IsZero() && !now.Before(d) {
		f := fault.New(fault.Timeout, "its deadline, %s, had passed before it could be run", d.UTC().Format(time.RFC3339))
		l.Ender.End(h.job, job.Outcome{End: job.Expired, Fault: f, Ended: now})
	} else if f := l.refusal(h.job); f != nil {
		l.Ender.End(h.job, job.Outcome{End: job.Faulted, Fault: f.AsPermanent(), Ended: time.Now()})
	} else {
		l.Dispatcher.Offer(h.job)
	}
	if l.hand.handedDown(h) {
		l.Dispatcher.Cancel(h.job)
	}
}

// refusal says why a job can never be run; nil when it can.
func (l *lane) refusal(j *job.Job) *fault.Fault {
	if kind := l.Kind(); kind != "" && j.Kind != kind {
		return fault.New(fault.UnknownKind, "queue %s runs tasks of kind %q, this one is of kind %q", l.Queue, kind, j.Kind)
	}
	if err := l.Check(j.Payload); err != nil {
		return fault.New(fault.InvalidPayload, "%s", err.Error())
	}
	return nil
}

// handle is asynq's handler: it waits for a run's verdict and returns when that has been carried out. Neither its context nor
// what it returns matters: what ends a run is decided here, and what asynq does for the task is answered by the gateway.
func (l *lane) handle(_ context.Context, t *asynq.Task) error {
	n, _ := strconv.ParseUint(string(t.Payload()), 10, 64)
	if h := l.hand.run(n); h != nil {
		l.attend(h)
	}
	return nil
}

// attend waits for a run's verdict and for its being carried out. Only the first who attends a run does something for it.
func (l *lane) attend(h *held) {
	if !l.hand.attend(h) {
		<-h.gone
		return
	}
	if h.before != nil {
		// An earlier run of the same task, of which it was taken away: two at once must not be.
		<-h.before
		l.handDown(h)
	}
	v := <-h.job.Verdict()
	if v.State == task.Cancelled && l.hand.hasExpired(h) {
		v = job.Verdict{Move: job.GiveBack, State: task.Waiting, Counters: h.counters, Suspect: h.suspect}
		v.Counters.Interruptions++
	}
	l.settler.put(h, v)
	<-h.gone
}

// attendAll attends the runs that asynq never asked for.
func (l *lane) attendAll() {
	for _, h := range l.fetched.takeAll() {
		go l.attend(h)
	}
}

// runEnded is told that asynq has ended a run. Should it have called no handler, somebody has to attend the run.
func (l *lane) runEnded(key string) {
	if h := l.hand.unattended(key); h != nil {
		go l.attend(h)
	}
}
