package orchestrator

import (
	"context"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// Reload takes the settings of a configuration that was read again. Live changes stay. What only a restart can change (queues,
// plugins, Redis, sockets) is left as it is and logged. On an error the old settings stay. Call it once Up is closed.
func (o *Orchestrator) Reload(config *Config) error {
	_, _, err := o.reload(config, "reload")
	return err
}

// ReplaceWorkers replaces every worker process, in each queue one after the other, new ones first. Call it once Up is closed.
func (o *Orchestrator) ReplaceWorkers() {
	o.log.Info("all workers are replaced, one by one in each queue")
	for _, p := range o.pools {
		p.Replace(job.ExitReload)
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
