package orchestrator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A task that always kills its process is quarantined after max_kills, and no other task is: with 8 slots and one poison among 1,000
// tasks, the other 999 complete and none of them is charged.
func TestPoisonIsFoundOut(t *testing.T) {
	t.Parallel()
	const tasks, poison, maxKills = 1000, 500, 3
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			t.Parallel()
			r := testenv.StartRedis(t, testenv.RedisOptions{})
			m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", fmt.Sprintf("max_workers: %d, slots: 8, buffer: 64, max_kills: %d", workers, maxKills)).start()
			c := straight(t, r)
			began := time.Now()
			ids := make([]task.ID, tasks)
			for i := range ids {
				order := map[string]any{"do": "sleep", "ms": i % 10, "value": i}
				if i == poison {
					order = map[string]any{"do": "exit", "code": 3}
				}
				ids[i] = submit(t, c, "misbehave", order)
			}
			ended, err := client.WaitAll(t.Context(), c, ids...)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("all had ended after %s", time.Since(began).Round(time.Millisecond))
			for i, e := range ended {
				switch {
				case i == poison:
					wantQuarantined(t, e, maxKills)
				case e.State != task.Completed || string(e.Result) != fmt.Sprint(i) || e.Counters.Kills > 0 || e.Counters.Failures > 0:
					t.Errorf("task %d: %s with %s, %+v", i, e.State, e.Result, e.Counters)
				}
			}
			m.stop()
		})
	}
}

// wantQuarantined checks that a task was quarantined for its kills alone, and that its history has each of them.
func wantQuarantined(t *testing.T, e *task.Task, kills int) {
	t.Helper()
	if e.State != task.Quarantined || e.Counters.Kills != kills || e.Counters.Failures != 0 || e.Counters.Losses != 0 {
		t.Errorf("the poison: %s, %+v; want quarantined after %d kills", e.State, e.Counters, kills)
	}
	n := 0
	for _, a := range e.History {
		if a.End != task.EndKilled {
			continue
		}
		n++
		if a.Exit != "crash" || a.PID == 0 || a.Worker == 0 {
			t.Errorf("the history of the poison says %+v", a)
		}
	}
	if n != kills {
		t.Errorf("the history of the poison has %d kills, want %d: %+v", n, kills, e.History)
	}
}
