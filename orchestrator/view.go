package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// view is the client behind this manager's API. In Redis a task that a manager has taken is active, whether it runs or
// still waits for its lock or a process; for the tasks that are here the view knows.
type view struct {
	client.Client
	o *Orchestrator
}

// Get is the client's, with what this manager knows of a task that it holds.
func (v view) Get(ctx context.Context, id task.ID) (*task.Task, error) {
	t, err := v.Client.Get(ctx, id)
	if err == nil && t.State == task.Running {
		v.o.complete(t)
	}
	return t, err
}

// complete adds what this manager knows of a task that some manager has taken.
func (o *Orchestrator) complete(t *task.Task) {
	waits := o.locker.Waits(t.ID) // asked first: it goes on from there to the pool
	var started time.Time
	var held, ok bool
	for _, s := range o.present.Load().all() {
		if s.name == t.ID.Queue && !ok {
			started, held, ok = s.pool.Find(t.ID)
		}
	}
	switch {
	case waits, held:
		t.State, t.Manager = task.Held, o.config.Manager.Name
		t.Attempts = max(0, t.Attempts-1) // it counts the run that is to come
	case ok: // else it is in another manager, or between two stages
		t.Started, t.Manager = started, o.config.Manager.Name
	}
}

// SubmitBatch is the client's, with what Submit does besides.
func (v view) SubmitBatch(ctx context.Context, work []client.Work) ([]client.Batched, error) {
	batch, err := v.Client.SubmitBatch(ctx, work)
	for i, b := range batch {
		if _, own := v.o.present.Load().queues[work[i].Queue]; own && err == nil && errors.Is(b.Err, client.ErrUnknownQueue) {
			v.o.announce(ctx)
			return v.Client.SubmitBatch(ctx, work) // what was submitted before is joined
		}
	}
	return batch, err
}

// Submit is the client's. A Redis that has lost its content has lost what the queues are, too; of its own a manager knows better.
func (v view) Submit(ctx context.Context, queue string, payload any, options ...client.Option) (client.Submitted, error) {
	submitted, err := v.Client.Submit(ctx, queue, payload, options...)
	if _, own := v.o.present.Load().queues[queue]; own && errors.Is(err, client.ErrUnknownQueue) {
		v.o.announce(ctx)
		return v.Client.Submit(ctx, queue, payload, options...)
	}
	return submitted, err
}
