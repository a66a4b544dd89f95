package embedded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
)

// killPeriod is the snapshot interval of the process that is killed.
const killPeriod = 200 * time.Millisecond

// kill -9 loses at most what was written in the last interval (and some slack here, for a busy
// machine), leaves no half of anything, and the next broker starts in the same directory.
func TestKillLosesAtMostTheLastSeconds(t *testing.T) {
	t.Parallel()
	const slack = 3 * time.Second
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
	write := func(n int) time.Time {
		if err := c.RPush(ctx, "list", n).Err(); err != nil {
			t.Fatal(err)
		}
		return time.Now()
	}
	// What is in the snapshot by itself, without a stop, must be there afterwards.
	const saved = 500
	for n := range saved {
		write(n)
	}
	write(saved)
	last := []byte(fmt.Sprintf("\x03%d", saved))
	until(t, "the items are saved while the broker runs", func() bool {
		raw, err := os.ReadFile(filepath.Join(dir, "redis.snapshot"))
		return err == nil && bytes.Contains(raw, last)
	})
	var written []time.Time
	for begun := time.Now(); time.Since(begun) < 5*killPeriod; {
		written = append(written, write(saved+1+len(written)))
	}
	kill()
	died := time.Now()

	c = start(t, embedded.Options{Dir: dir}).client(t)
	kept := must[[]string](t)(c.LRange(ctx, "list", 0, -1).Result())
	for n, item := range kept {
		if item != strconv.Itoa(n) {
			t.Fatalf("item %d is %s", n, item)
		}
	}
	late := len(kept) - saved - 1
	if late < 0 || late > len(written) {
		t.Fatalf("%d items are there; %d were saved and %d written after that", len(kept), saved+1, len(written))
	}
	if late < len(written) {
		lost := died.Sub(written[late])
		t.Logf("lost the last %v: %d of %d items", lost, len(written)-late, len(written))
		if lost > killPeriod+slack {
			t.Errorf("lost the last %v with snapshots every %v", lost, killPeriod)
		}
	}
}
