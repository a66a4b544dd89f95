package orchestrator

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/drover-jobs/drover/orchestrator/internal/hook"
)

// buildHooks makes what tells of dead letters.
func (o *Orchestrator) buildHooks() {
	o.hooks = hook.New(hook.Deps{
		Redis: o.redis, Queues: func() []string { return slices.Collect(maps.Keys(o.present.Load().queues)) }, Log: o.log,
		OnDead: o.onDead,
		Submit: func(ctx context.Context, queue string, payload []byte) error {
			_, err := o.tasks.Submit(ctx, queue, json.RawMessage(payload))
			return err
		},
	})
}

// onDead is where the deaths of a queue of this manager are told; empty for nowhere.
func (o *Orchestrator) onDead(queue string) string {
	if s, ok := o.present.Load().queues[queue]; ok {
		return o.settingsOf(s).OnDead
	}
	return ""
}
