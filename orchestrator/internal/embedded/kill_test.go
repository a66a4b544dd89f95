package embedded_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
)

// killPeriod is the snapshot interval of the process that is killed.
const killPeriod = 200 * time.Millisecond

// kill -9 loses at most what was written in the last interval (twice that is allowed here, for a
// busy machine), leaves no half of anything, and the next broker starts in the same directory.
func TestKillLosesAtMostTheLastSeconds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	self := must[string](t)(os.Executable())
	process := exec.Command(self)
	process.Env = append(os.Environ(), helperVariable+"="+dir)
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill := func() {
		if !killed {
			killed = true
			_ = process.Process.Kill()
			_ = process.Wait()
		}
	}
	defer kill()

	var access embedded.Access
	until(t, "the process says its address", func() bool {
		raw, err := os.ReadFile(filepath.Join(dir, "redis.json"))
		return err == nil && json.Unmarshal(raw, &access) == nil
	})
	if access.PID != process.Process.Pid {
		t.Errorf("redis.json names process %d, not %d", access.PID, process.Process.Pid)
	}
	c := connect(t, access.Address, access.Password)
	var written []time.Time
	for begun := time.Now(); time.Since(begun) < 1500*time.Millisecond; {
		if err := c.RPush(ctx, "list", len(written)).Err(); err != nil {
			t.Fatal(err)
		}
		written = append(written, time.Now())
	}
	kill()
	died := time.Now()

	c = start(t, embedded.Options{Dir: dir}).client(t)
	kept := must[[]string](t)(c.LRange(ctx, "list", 0, -1).Result())
	if len(kept) == 0 || len(kept) > len(written) {
		t.Fatalf("%d of %d items are there", len(kept), len(written))
	}
	if len(kept) < len(written) {
		lost := died.Sub(written[len(kept)])
		t.Logf("lost the last %v: %d of %d items", lost, len(written)-len(kept), len(written))
		if lost > 2*killPeriod+500*time.Millisecond {
			t.Errorf("lost the last %v with snapshots every %v", lost, killPeriod)
		}
	}
}
