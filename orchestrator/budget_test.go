package orchestrator_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// With max_processes 2, a system queue that is busy with long tasks and has many more gives a user's task its process as soon as one
// of its own has ended, which nothing interrupts; afterwards it has its share again. Never are there more than two processes.
func TestBudgetOfProcesses(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "")
	_, misbehave, _ := programs(t)
	m.rewrite(fmt.Sprintf(`
manager: {name: test, state_dir: %q, log: {level: debug}, max_processes: 2, drain_timeout: 100ms}
redis: {address: %q}
plugins:
  misbehave: {command: [%q]}
queues:
  background: {plugin: misbehave, priority: system, max_workers: 4, buffer: 16}
  people: {plugin: misbehave, worker_idle: 100ms}
`, filepath.Join(m.dir, "state"), r.URL(), misbehave))
	m.start()
	c := straight(t, r)
	var background []task.ID
	for i := range 12 {
		background = append(background, submit(t, c, "background", map[string]any{"do": "sleep", "ms": 1000 + 500*(i%2), "value": i}))
	}
	eventually(t, "the system queue has both processes and a full hand", func() error {
		if q := m.queue(t, "background"); q.GetRunning() != 2 || q.GetHeld() == 0 {
			return fmt.Errorf("%d run and %d are held", q.GetRunning(), q.GetHeld())
		}
		return nil
	})
	urgent := submit(t, c, "people", map[string]any{"do": "return", "value": 1})
	ended, err := client.Wait(t.Context(), c, urgent)
	if err != nil || ended.State != task.Completed {
		t.Fatalf("%+v, %v", ended, err)
	}
	// It waited for the first of the two that were running; on a busy machine the other may have ended as well, and its next.
	over := 0
	for _, id := range background {
		b, err := c.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if b.State == task.Completed {
			over++
		}
	}
	if most := 4; over > most {
		t.Errorf("%d system tasks were over when the user's task was, and it waited for one", over)
	}
	eventually(t, "the system queue has its share again", func() error {
		if n := len(m.workers(t, "background")); n != 2 || len(m.workers(t, "people")) != 0 {
			return fmt.Errorf("it has %d", n)
		}
		return nil
	})
	if err := m.wroteLine("ended: budget,", "queue=background")(); err != nil {
		t.Error(err)
	}
	all, err := client.WaitAll(t.Context(), c, background...)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.State != task.Completed || e.Counters != (task.Counters{}) {
			t.Errorf("%s: %s, %+v", e.ID, e.State, e.Counters)
		}
	}
	m.stop()
}

func submit(t *testing.T, c client.Client, queue string, payload any) task.ID {
	t.Helper()
	s, err := c.Submit(t.Context(), queue, payload)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}
