package bridge_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/plugins/exec/internal/bridge"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
)

// A child that died is replaced before there is a task for the next one, so that no task waits for all of its start; and
// the task gets that child, not a third one.
func TestReplacedInAdvance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := `echo started >> starts; echo '{"type":"ready"}'; read -r line; exit 9`
	w := sdktest.Start(t, bridge.Program(bridge.CommandLine{Name: "test", Command: []string{"sh", "-c", script}}, &buffer{}),
		sdktest.Options(t, map[string]any{"dir": dir, "start_timeout": "20s"}))
	starts := func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "starts")) // not there is none
		return strings.Count(string(text), "started")
	}
	for n := range 3 {
		wantFault(t, w, `{}`, fault.Crash, "exit code 9")
		eventually(t, "a new child without a task", func() bool { return starts() == n+2 })
	}
}
