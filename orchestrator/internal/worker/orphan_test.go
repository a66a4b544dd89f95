package worker_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// A manager that dies by SIGKILL leaves no worker.
func TestDeadManagerLeavesNoWorker(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")[0]
	// The kernel's signal ends the shell, which knows no lifeline, and does not reach its child, which has only its lifeline.
	indirect := script(t, program+"; kill -STOP $$")
	for name, command := range map[string]string{"child": program, "frozen": program, "grandchild": indirect} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manager := exec.CommandContext(t.Context(), self, testenv.ShortDir(t), command) //nolint:gosec // ourselves
			manager.Env = append(os.Environ(), roleVariable+"="+roleManager)
			manager.Stderr = os.Stderr
			output, err := manager.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := manager.Start(); err != nil {
				t.Fatal(err)
			}
			var pids []int
			lines := bufio.NewScanner(output)
			for range 3 {
				if !lines.Scan() {
					t.Fatal("the manager printed no more processes")
				}
				pid, err := strconv.Atoi(lines.Text())
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
				pids = append(pids, childrenOf(t, pid)...)
			}
			t.Cleanup(func() {
				for _, pid := range pids {
					if t.Failed() && alive(pid) {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
			})
			if name == "frozen" {
				for _, pid := range pids {
					freeze(t, pid)
				}
			}
			began := time.Now()
			if err := manager.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = manager.Wait() // it was killed
			eventually(t, "the workers are gone", func() bool { return !slices.ContainsFunc(pids, alive) })
			if took := time.Since(began); took > 2*time.Second+busy {
				t.Errorf("they were gone after %s", took)
			}
		})
	}
}

func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(data)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, child)
	}
	return pids
}
