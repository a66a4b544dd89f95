package orchestrator

import (
	"context"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// Reload takes a configuration that was read again: its settings, queues and plugins. Live changes stay. What only a restart can
// change (Redis, locks, sockets, names) is left as it is and logged. It does not wait, because new plugins are asked what they are: what
// becomes of it is told in the log, and on an error everything stays as it was. Where ReloadFrom has said how, the configuration is
// read once more when it is taken, so that an old one never wins over a newer. Call it once Up is closed.
func (o *Orchestrator) Reload(config *Config) error {
	select {
	case <-o.hangups: // a newer one is there
	default:
	}
	select {
	case o.hangups <- config:
	default: // one that came meanwhile
	}
	return nil
}

// heedHangups takes the configurations that Reload was given until ctx ends.
func (o *Orchestrator) heedHangups(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case config := <-o.hangups:
			load := o.load
			if load == nil {
				load = func() (*Config, error) { return config, nil }
			}
			if _, err := o.reload(load, "reload"); err != nil {
				o.log.Error("the configuration was not reloaded", "error", err)
			}
		}
	}
}

// ReplaceWorkers replaces every worker process, in each queue one after the other, new ones first. Call it once Up is closed.
func (o *Orchestrator) ReplaceWorkers() {
	o.log.Info("all workers are replaced, one by one in each queue")
	for _, s := range o.present.Load().queues {
		s.pool.Replace(job.ExitReload)
	}
}

// LogStatus writes the status to the log. Call it once Up is closed.
func (o *Orchestrator) LogStatus(ctx context.Context) {
	s, err := o.status.Status(ctx)
	if err != nil {
		o.log.Error("status", "error", err)
		return
	}
	o.log.Info("status", "state", s.GetManager().GetState(), "broker", s.GetManager().GetBroker(), "broker_error", s.GetManager().GetBrokerError(), "in_hand", o.intake.InHand())
	for _, q := range s.GetQueues() {
		o.log.Info("status of queue", "queue", q.GetName(), "state", q.GetState(), "reason", q.GetReason(), "waiting", q.GetWaiting(),
			"retry", q.GetRetry(), "dead", q.GetDead(), "held", q.GetHeld(), "running", q.GetRunning(), "workers", q.GetWorkers(),
			"max_workers", q.GetMaxWorkers(), "completed", q.GetCompleted(), "failed", q.GetFailed(), "killed", q.GetKilled())
	}
	held, waiting, store, err := o.locks()
	o.log.Info("status of locks", "in", store, "held", len(held), "waiting", len(waiting), "error", err)
	for _, w := range s.GetWorkers() {
		o.log.Info("status of worker", "worker", w.GetId(), "queue", w.GetQueue(), "pid", w.GetPid(), "state", w.GetState(),
			"tasks", w.GetTasks(), "running", w.GetRunning(), "rss_bytes", w.GetRssBytes())
	}
}
