package chaos_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// The short form of `make chaos`: two managers, every deed, every kind of fault, one seed whose plan has them all.
// Every promise is kept.
func TestEveryPromiseIsKeptUnderFaults(t *testing.T) {
	t.Parallel()
	programs := testenv.BuildBinaries(t, "orchestrator/cmd/droverd", "plugins/sdk/sdktest/misbehave")
	var out bytes.Buffer
	err := chaos.Run(t.Context(), chaos.Options{
		Plan:    plan.Options{Seed: 8, Managers: 2, Tasks: 200, Duration: 6 * time.Second, Faults: plan.Kinds(), Locks: plan.LocksInMemcached},
		Manager: programs[0], Worker: programs[1],
		Settle: 2 * time.Minute, OrphansWithin: 10 * time.Second, Slack: 10 * time.Second, // of a busy machine
		Out: &out,
	})
	t.Logf("%s", &out)
	if err != nil {
		t.Error(err)
	}
}
