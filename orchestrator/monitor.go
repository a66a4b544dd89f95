package orchestrator

import (
	"errors"

	"github.com/drover-jobs/drover/orchestrator/internal/metrics"
)

// errNotRunning says that the manager starts or stops.
var errNotRunning = errors.New("the manager is stopping")

// ready says why the manager takes no tasks now; nil while it does.
func (o *Orchestrator) ready() error {
	if *o.status.state.Load() != "running" {
		return errNotRunning
	}
	return o.brokerError()
}

// newMetrics shows this manager to Prometheus.
func (o *Orchestrator) newMetrics() *metrics.Metrics {
	return metrics.New(metrics.Deps{
		Status: o.status.Status, Log: o.log,
		Locks: func() (int, error) {
			held, _, _, err := o.locks()
			return len(held), err
		},
	})
}
