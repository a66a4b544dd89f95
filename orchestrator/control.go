package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/ledger"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// control is the manager as the control API shows and changes it. Its handlers stand in the files control_*.go.
type control struct {
	*status
	o      *Orchestrator
	ledger *ledger.Ledger
	saved  *savedSettings
}

var _ api.Control = (*control)(nil)

// buildControl makes the control before anything can be asked of it; what it needs is there once Up is closed.
func (o *Orchestrator) buildControl() {
	o.control = &control{
		status: o.status, o: o, saved: newSavedSettings(o.config.Manager.StateDir),
		ledger: ledger.New(ledger.Deps{
			Redis: o.redis, Manager: o.config.Manager.Name, Known: o.complete,
			Retention: func(queue string) time.Duration { return o.queueSettings(queue).Retention },
		}),
	}
}

// own returns an error unless the queue is one of this manager.
func (c *control) own(queue string) error {
	_, err := c.served(queue)
	return err
}

// served returns a queue of this manager. The error says that it has none of that name.
func (c *control) served(queue string) (*served, error) {
	queues := c.o.present.Load().queues
	if s, ok := queues[queue]; ok {
		return s, nil
	}
	names := slices.Sorted(maps.Keys(queues))
	hint := ""
	if near := settings.Nearest(queue, names); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return nil, api.NotFound(fmt.Errorf("%w in this manager: %.80q%s", client.ErrUnknownQueue, queue, hint))
}

// exists returns an error unless some manager or client has put the queue into Redis.
func (c *control) exists(ctx context.Context, queue string) error {
	unknown := c.own(queue)
	if unknown == nil {
		return nil
	}
	if err := task.CheckName(queue); err != nil {
		return api.NotFound(fmt.Errorf("%w: %w", client.ErrUnknownQueue, err))
	}
	there, err := c.ledger.Exists(ctx, queue)
	if err != nil {
		return fmt.Errorf("queue %s is none of this manager, and whether it is one of another cannot be told: %w", queue, err)
	}
	if !there {
		return unknown
	}
	return nil
}

// refusal gives errors of the ledger their meaning for callers.
func refusal(err error) error {
	var invalid *ledger.InvalidError
	if errors.As(err, &invalid) {
		return api.Invalid(err)
	}
	return err
}
