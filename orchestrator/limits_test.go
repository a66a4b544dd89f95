package orchestrator_test

import (
	"slices"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest/conform"
)

// The test of workers, which knows no manager, knows the same settings of a queue.
func TestLimitsOfWorkers(t *testing.T) {
	t.Parallel()
	got, want := slices.Sorted(slices.Values(conform.Limits())), slices.Sorted(slices.Values(settings.Names(settings.ScopeQueue)))
	if !slices.Equal(got, want) {
		t.Errorf("package conform knows\n%q\nthe settings of a queue are\n%q", got, want)
	}
}
