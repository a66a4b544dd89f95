package orchestrator

import (
	"context"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// view is the client behind this manager's API. In Redis a task that a manager has taken is active, whether it runs or
// still waits for a process; for the tasks that are here the view knows.
type view struct {
	client.Client
	o *Orchestrator
}

// Get is the client's, with what this manager knows of a task that it holds.
func (v view) Get(ctx context.Context, id task.ID) (*task.Task, error) {
	t, err := v.Client.Get(ctx, id)
	if err != nil || t.State != task.Running {
		return t, err
	}
	p := v.o.pools[id.Queue]
	if p == nil {
		return t, nil
	}
	started, held, ok := p.Find(id)
	switch {
	case !ok: // in another manager, or between two stages
	case held:
		t.State = task.Held
		t.Attempts = max(0, t.Attempts-1) // it counts the run that is to come
	default:
		t.Started, t.Manager = started, v.o.config.Manager.Name
	}
	return t, nil
}
