package orchestrator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// The embedded broker keeps its queue over a clean stop, and over kill -9 of the manager all but the last seconds; every
// task then completes. Its password is on no command line and in no worker's environment.
func TestEmbeddedBrokerKeepsItsQueue(t *testing.T) {
	t.Parallel()
	m := setUp(t, "{embedded: true}", "drain_timeout: 1s", "max_workers: 1, slots: 1, buffer: 4").start()
	c := m.connect(t)
	var ids []task.ID
	for i := range 10 {
		s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "sleep", "ms": 1500, "value": i})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	wantNoSecretShown(t, m)
	m.stop()
	m.start()
	// Two snapshots' time, so that what was submitted is on the disk.
	time.Sleep(4 * time.Second) //nolint:forbidigo // the interval is the promise
	m.signal(syscall.SIGKILL)
	m.wait()
	m.start()
	ended, err := client.WaitAll(t.Context(), m.connect(t), ids...)
	if err != nil {
		t.Fatal(err)
	}
	losses := 0
	for i, e := range ended {
		losses += e.Counters.Losses
		if e.State != task.Completed || string(e.Result) != fmt.Sprint(i) || e.Counters.Failures+e.Counters.Kills > 0 {
			t.Errorf("task %d: %s with %s, %+v", i, e.State, e.Result, e.Counters)
		}
	}
	if losses == 0 {
		t.Error("nothing ran or waited in the manager when it was killed, so the test proves nothing")
	}
	m.stop()
	// Neither the killed manager nor the others left sockets behind.
	if left, err := filepath.Glob(filepath.Join(m.dir, "drover-sockets-*")); err != nil || len(left) > 0 {
		t.Errorf("directories of sockets are left: %v, %v", left, err)
	}
}

// wantNoSecretShown looks for the broker's password in the command lines and environments of the manager and its workers.
func wantNoSecretShown(t *testing.T, m *manager) {
	t.Helper()
	access, err := os.ReadFile(filepath.Join(m.dir, "state", "redis.json")) //nolint:gosec // the test's own
	if err != nil {
		t.Fatal(err)
	}
	password := ""
	for _, part := range strings.Split(string(access), `"`) {
		if len(part) == 64 {
			password = part
		}
	}
	if password == "" {
		t.Fatal("the access file has no password of 256 bits")
	}
	var workers []int
	eventually(t, "a worker runs", func() error {
		workers = childrenOf(t, m.process.Process.Pid, "misbehave")
		if len(workers) == 0 {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	for _, pid := range append(workers, m.process.Process.Pid) {
		for _, file := range []string{"cmdline", "environ"} {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), password) {
				t.Errorf("the password stands in the %s of process %d", file, pid)
			}
		}
	}
}
