package orchestrator

import (
	"context"
	"fmt"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// Pause stops the taking of a queue's tasks, by all managers or by this one.
func (c *control) Pause(ctx context.Context, r *apiv1.PauseRequest) (*apiv1.PauseResponse, error) {
	queue := r.GetQueue()
	s, err := c.served(queue)
	if err != nil {
		return nil, err
	}
	if r.GetHere() {
		s.gate.closed.Store(true)
		c.o.noteQueue(queue, "paused", "in this manager")
		c.o.log.Info("queue paused in this manager", "queue", queue, "who", api.Caller(ctx))
		return &apiv1.PauseResponse{}, nil
	}
	if err := c.ledger.Pause(ctx, queue); err != nil {
		return nil, fmt.Errorf("pause queue %s for all managers: %w; pausing it here works without Redis", queue, err)
	}
	c.o.noteQueue(queue, "paused", "in Redis, for all managers")
	c.o.log.Info("queue paused for all managers", "queue", queue, "who", api.Caller(ctx))
	return &apiv1.PauseResponse{}, nil
}

// Resume undoes both sorts of pause, and tries at once to start what could not be started. What needs no Redis is done first.
func (c *control) Resume(ctx context.Context, r *apiv1.ResumeRequest) (*apiv1.ResumeResponse, error) {
	queue := r.GetQueue()
	s, err := c.served(queue)
	if err != nil {
		return nil, err
	}
	s.gate.closed.Store(false)
	s.pool.Resume()
	c.o.intake.Kick()
	if err := c.ledger.Resume(ctx, queue); err != nil {
		return nil, fmt.Errorf("queue %s takes tasks again as far as this manager is concerned, but whether it is paused for all managers cannot be changed: %w", queue, err)
	}
	c.o.noteQueue(queue, "resumed", "")
	c.o.log.Info("queue resumed", "queue", queue, "who", api.Caller(ctx))
	return &apiv1.ResumeResponse{}, nil
}

// Locks lists the locks of this manager's tasks, and the tasks that wait for one.
func (c *control) Locks(context.Context, *apiv1.LocksRequest) (*apiv1.LocksResponse, error) {
	held, waiting, store, err := c.o.locks()
	answer := &apiv1.LocksResponse{Held: protoLocks(held), Waiting: protoLocks(waiting), Store: store}
	if err != nil {
		answer.StoreError = err.Error()
	}
	return answer, nil
}

func protoLocks(infos []lock.Info) []*apiv1.Lock {
	locks := make([]*apiv1.Lock, len(infos))
	for i, info := range infos {
		locks[i] = &apiv1.Lock{
			Key: info.Key, Queue: info.Queue, TaskId: info.Task.String(), SinceMs: info.Since.UnixMilli(), HolderManager: info.Holder.Manager,
		}
		if !info.Until.IsZero() {
			locks[i].UntilMs = info.Until.UnixMilli()
		}
		if !info.Holder.Task.IsZero() {
			locks[i].HolderTaskId = info.Holder.Task.String()
		}
	}
	return locks
}
