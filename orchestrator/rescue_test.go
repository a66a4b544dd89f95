package orchestrator_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// kill -9 of a manager: its workers are gone at once, its tasks run on another manager within 15 seconds, and it costs
// them a loss and nothing else.
func TestDeadManagersTasksRunElsewhere(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	address := fmt.Sprintf("{address: %q}", r.URL())
	first := setUp(t, address, "", "max_workers: 2, buffer: 4").start()
	c := straight(t, r)
	var ids []task.ID
	for i := range 4 {
		s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "sleep", "ms": 2000, "value": i})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	eventually(t, "two workers run", func() error {
		if n := len(childrenOf(t, first.process.Process.Pid, "misbehave")); n != 2 {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	second := setUp(t, address, "", "max_workers: 4").start()
	workers := childrenOf(t, first.process.Process.Pid, "misbehave")
	first.signal(syscall.SIGKILL)
	first.wait()
	died := time.Now()
	eventually(t, "no worker of the dead manager is left", func() error {
		for _, pid := range workers {
			if err := syscall.Kill(pid, 0); err == nil {
				return fmt.Errorf("process %d lives", pid)
			}
		}
		return nil
	})
	if took := time.Since(died); took > 2*time.Second {
		t.Errorf("the workers took %s to be gone", took)
	}
	ended, err := client.WaitAll(t.Context(), c, ids...)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range ended {
		if e.State != task.Completed || e.Counters != (task.Counters{Losses: 1}) {
			t.Errorf("task %d: %s, %+v; want completed with one loss", i, e.State, e.Counters)
		}
		if waited := e.Started.Sub(died); waited > 15*time.Second {
			t.Errorf("task %d ran %s after its manager died", i, waited)
		}
	}
	second.stop()
}
