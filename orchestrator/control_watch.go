package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/news"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

// Watch gives what happens: to tasks of this Redis, to the workers and queues of this manager.
func (c *control) Watch(ctx context.Context, r *apiv1.WatchRequest) iter.Seq2[*apiv1.WatchResponse, error] {
	return func(yield func(*apiv1.WatchResponse, error) bool) {
		if err := watchable(r); err != nil {
			yield(nil, api.Invalid(err))
			return
		}
		f := c.o.news.Follow(ctx, news.Filter{Queue: r.GetQueue(), Task: r.GetTaskId()})
		defer f.Close()
		if ctx.Err() != nil || !yield(nil, nil) {
			return
		}
		for {
			batch, err := f.Next(ctx)
			if err != nil {
				return // the caller has gone, or the manager stops
			}
			for _, m := range batch {
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

func watchable(r *apiv1.WatchRequest) error {
	if r.GetQueue() != "" && r.GetTaskId() != "" {
		return errors.New("watch a queue or a task, not both")
	}
	if r.GetQueue() != "" {
		return task.CheckName(r.GetQueue())
	}
	if r.GetTaskId() != "" {
		_, err := task.ParseID(r.GetTaskId())
		return err
	}
	return nil
}

// noteQueue tells those who watch of something that happened to a queue; to the manager for "".
func (o *Orchestrator) noteQueue(queue, event, text string) {
	o.news.Tell(queueNews(queue, event, text, time.Now()))
}

func queueNews(queue, event, text string, at time.Time) *apiv1.WatchResponse {
	return &apiv1.WatchResponse{AtMs: at.UnixMilli(), Happened: &apiv1.WatchResponse_Queue{
		Queue: &apiv1.QueueEvent{Queue: queue, Event: event, Text: text},
	}}
}

// noteSettings tells those who watch what differs between two snapshots of the settings.
func (o *Orchestrator) noteSettings(before, after *settings.Snapshot) {
	for _, d := range settings.Effects(before, after, nil) {
		o.noteQueue(d.Queue, "settings", d.Name+" "+d.Before+" -> "+d.After)
	}
}

// newsEnder tells those who watch of starts and ends of workers, and those who keep what they wrote of their ends, besides what an
// Ender does.
type newsEnder struct {
	pool.Ender
	news     *news.Hub
	writings *writings
}

// WorkerStarted tells of a start.
func (e newsEnder) WorkerStarted(queue string, number uint64, pid int) {
	e.Ender.WorkerStarted(queue, number, pid)
	e.tell(&apiv1.WorkerEvent{Worker: number, Queue: queue, Pid: int32(pid), Event: "started"}) //nolint:gosec // fits
}

// WorkerEnded tells of an end.
func (e newsEnder) WorkerEnded(queue string, exit job.Exit) {
	e.Ender.WorkerEnded(queue, exit)
	e.writings.end(exit)
	e.tell(&apiv1.WorkerEvent{
		Worker: exit.Worker, Queue: queue, Pid: int32(exit.PID), Event: "ended", Reason: string(exit.Reason), Text: exit.String(), //nolint:gosec // fits
	})
}

func (e newsEnder) tell(w *apiv1.WorkerEvent) {
	e.news.Tell(&apiv1.WatchResponse{AtMs: time.Now().UnixMilli(), Happened: &apiv1.WatchResponse_Worker{Worker: w}})
}

// queueLookEvery is how often the queues are looked at for those who watch.
const queueLookEvery = 200 * time.Millisecond

// noteQueues tells those who watch when a circuit opens or closes and what is decided about the number of workers, until ctx
// ends. While nobody watches it looks at nothing.
func (o *Orchestrator) noteQueues(ctx context.Context) {
	ticker := time.NewTicker(queueLookEvery)
	defer ticker.Stop()
	var seen map[string]queueSight // nil while nobody watched
	unwatched := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !o.news.Watched() {
			seen, unwatched = nil, time.Now()
			continue
		}
		queues := o.present.Load().queues
		now := make(map[string]queueSight, len(queues))
		for name, s := range queues {
			before, known := seen[name]
			if !known { // somebody has just begun to watch
				before = queueSight{decided: unwatched, open: s.pool.Stats().CircuitOpen}
			}
			now[name] = o.noteQueueOnce(name, s.pool, before)
		}
		seen = now
	}
}

// queueSight is what was seen of a queue last.
type queueSight struct {
	open    bool // the circuit
	decided time.Time
}

// noteQueueOnce tells what has changed since a queue was seen last.
func (o *Orchestrator) noteQueueOnce(name string, p *pool.Pool, before queueSight) queueSight {
	stats, decisions := p.Stats(), p.Explain().Before // the latest first
	now := queueSight{open: stats.CircuitOpen, decided: before.decided}
	if len(decisions) > 0 && decisions[0].At.After(now.decided) {
		now.decided = decisions[0].At
	}
	for _, d := range slices.Backward(decisions) {
		if d.At.After(before.decided) {
			o.news.Tell(queueNews(name, "decision", decisionText(d), d.At))
		}
	}
	switch {
	case now.open == before.open:
	case now.open:
		o.noteQueue(name, "circuit-open", stats.Reason)
	default:
		o.noteQueue(name, "circuit-closed", "a worker could be started")
	}
	return now
}

// decisionText says a decision in words, such as "2 start: 8 tasks do not fit ...".
func decisionText(d pool.Decided) string {
	switch {
	case d.Start > 0:
		return fmt.Sprintf("%d start: %s", d.Start, d.Reason)
	default:
		return fmt.Sprintf("%d leave: %s", d.Stop, d.Reason)
	}
}
