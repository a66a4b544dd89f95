package orchestrator_test

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A manager is killed five times, or a hundred times in the long form, while it is full of tasks. Each time no process of it is left
// after two seconds, and no socket. Every task is done within 15 seconds of the presence of a manager that stays; none is lost, and none
// is charged. In the long form every tenth manager stays so long.
func TestKilledManagerLosesNothing(t *testing.T) {
	t.Parallel()
	rounds, kills := 1, 5
	if long() {
		rounds, kills = 10, 10
	}
	mark := fmt.Sprintf("%d", 3_000_000+os.Getpid())
	killMarked(t, mark)
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "min_workers: 2, max_workers: 4, slots: 4, buffer: 16")
	_, misbehave, _ := programs(t)
	m.replaceWorker(misbehave, mark)
	c := straight(t, r)
	lossesOfAll, slowest := 0, time.Duration(0)
	for range rounds {
		var ids []task.ID
		for range kills {
			m.start()
			fresh := load(t, c, mark, len(ids))
			ids = append(ids, fresh...)
			m.wantRunning(t, fresh[:longOnes])
			m.signal(syscall.SIGKILL)
			m.wait()
			nothingLeft(t, m, mark, time.Now())
		}
		m.start()
		present, late := time.Now(), watchLateness(t)
		ended, err := client.WaitAll(t.Context(), c, ids...)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(present)
		slowest = max(slowest, took)
		late.within(t, "from the next manager's presence to the last task's end", took, 15*time.Second)
		for i, e := range ended {
			if e.State != task.Completed || string(e.Result) != fmt.Sprint(i) || e.Counters.Failures > 0 || e.Counters.Kills > 0 {
				t.Errorf("task %d: %s with %s, %+v", i, e.State, e.Result, e.Counters)
			}
			lossesOfAll += e.Counters.Losses
		}
		m.stop()
	}
	t.Logf("%d managers killed, %d losses counted, the tasks were done at most %s after the next manager was present", rounds*kills, lossesOfAll, slowest.Round(time.Millisecond))
	if lossesOfAll == 0 {
		t.Error("no task was lost by a manager that died: the test shows nothing")
	}
}

// The tasks of a load: as many long ones as the manager has slots, and as many others as it takes besides.
const (
	longOnes  = 16
	shortOnes = 14
)

// load submits two tasks that leave a child which sleeps for as long as the mark says, then long ones that run, in their first run,
// until somebody kills their manager, and others that wait behind them. It returns these, the long ones first.
func load(t *testing.T, c *direct.Client, mark string, from int) []task.ID {
	t.Helper()
	seconds, err := strconv.Atoi(mark)
	if err != nil {
		t.Fatal(err)
	}
	orders := []map[string]any{{"do": "fork", "ms": seconds * 1000}, {"do": "setsid", "ms": seconds * 1000}}
	for i := range longOnes + shortOnes {
		order := map[string]any{"do": "sleep", "ms": 5, "value": from + i}
		if i < longOnes {
			order["ms"], order["times"] = 60_000, 1
		}
		orders = append(orders, order)
	}
	var ids []task.ID
	for _, order := range orders {
		s, err := c.Submit(t.Context(), "misbehave", order, client.Unique(false))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	return ids[2:]
}

// wantRunning waits until all of these tasks run in the manager.
func (m *manager) wantRunning(t *testing.T, ids []task.ID) {
	t.Helper()
	c, err := client.Dial("unix:" + m.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, id := range ids {
		eventually(t, "a task runs", func() error {
			got, err := c.Get(t.Context(), id)
			if err == nil && got.State != task.Running {
				err = fmt.Errorf("it is %s", got.State)
			}
			return err
		})
	}
}

// runs reports, as an error, that fewer than n tasks of a queue run.
func (m *manager) runs(t *testing.T, queue string, n int64) error {
	t.Helper()
	if q := m.queue(t, queue); q.GetRunning() < n {
		return fmt.Errorf("%d run, %d are held", q.GetRunning(), q.GetHeld())
	}
	return nil
}
