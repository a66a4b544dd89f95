package chaos

import (
	"io"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
)

// Options say what is run.
type Options struct {
	Plan plan.Options
	// Manager and Worker are the programs droverd and misbehave.
	Manager, Worker string
	// Settle is how long to wait for the last task, once the faults are over.
	Settle time.Duration
	// OrphansWithin is how long processes of a killed manager may be there.
	OrphansWithin time.Duration
	// Slack is added to what a stop may take, on a machine that is busy with other things.
	Slack time.Duration
	// Keep keeps the run's directory in any case.
	Keep bool
	// Out takes the tables and what goes on.
	Out io.Writer
}

// What holds for every run.
const (
	drainTimeout = 2 * time.Second
	stopPromise  = drainTimeout + 2*time.Second
	// stopPatience is how long a stop is waited for before it counts as hanging.
	stopPatience = stopPromise + 20*time.Second
)
