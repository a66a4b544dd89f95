package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A plugin that is missing when the manager starts keeps only its own queue waiting, with the reason shown before anybody
// submits; its queue takes no tasks that nobody could check. Once the program is there, the queue goes on by itself.
func TestMissingPluginIsRepaired(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "")
	program := filepath.Join(m.dir, "later")
	m.replaceWorker(program)
	m.start()
	c := m.connect(t)
	if _, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "return"}); !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), "has started once") {
		t.Errorf("submit: %v", err)
	}
	q := m.queue(t, "misbehave")
	if q.GetState() != "circuit-open" || !strings.Contains(q.GetReason(), program) {
		t.Errorf("the queue is %s: %s", q.GetState(), q.GetReason())
	}
	other, err := c.Submit(t.Context(), "noop", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := client.Wait(t.Context(), c, other.ID); err != nil || ended.State != task.Completed {
		t.Errorf("the other queue: %+v, %v", ended, err)
	}

	_, misbehave, _ := programs(t)
	if err := os.Symlink(misbehave, program); err != nil {
		t.Fatal(err)
	}
	var submitted client.Submitted
	eventually(t, "the queue takes tasks", func() (err error) {
		submitted, err = c.Submit(t.Context(), "misbehave", map[string]any{"do": "return", "value": 5})
		return err
	})
	ended, err := client.Wait(t.Context(), c, submitted.ID)
	if err != nil || ended.State != task.Completed || ended.Counters != (task.Counters{}) {
		t.Errorf("%+v, %v", ended, err)
	}
	if q := m.queue(t, "misbehave"); q.GetState() != "ok" {
		t.Errorf("the queue is %s: %s", q.GetState(), q.GetReason())
	}
	m.stop()
}

// A plugin that hangs when it is started keeps neither the manager nor the other queues from working.
func TestHangingPlugin(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "start_timeout: 2s", "")
	m.replaceWorker("/bin/sleep", "1000")
	began := time.Now()
	m.start()
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the manager was up after %s", took)
	}
	c := m.connect(t)
	s, err := c.Submit(t.Context(), "noop", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := client.Wait(t.Context(), c, s.ID); err != nil || ended.State != task.Completed {
		t.Errorf("%+v, %v", ended, err)
	}
	if q := m.queue(t, "misbehave"); q.GetState() != "circuit-open" {
		t.Errorf("the queue is %s: %s", q.GetState(), q.GetReason())
	}
	m.stop()
	if left := childrenOf(t, m.process.Process.Pid, "sleep"); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// A task that a manager has taken and that still waits for a process is held, not running; one that runs says since when.
func TestHeldIsNotRunning(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "drain_timeout: 1s", "max_workers: 1, buffer: 4").start()
	c := m.connect(t)
	var ids []task.ID
	for i := range 2 {
		s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "sleep", "ms": 5000, "value": i})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	eventually(t, "one runs and one is held", func() error {
		running, err := c.Get(t.Context(), ids[0])
		if err != nil {
			return err
		}
		held, err := c.Get(t.Context(), ids[1])
		if err != nil {
			return err
		}
		if running.State != task.Running || running.Started.IsZero() || running.Manager != "test" || held.State != task.Held || held.Attempts != 0 {
			return fmt.Errorf("%s since %s, and %s with %d attempts", running.State, running.Started, held.State, held.Attempts)
		}
		return nil
	})
	m.stop()
}

// queue returns what the manager's status says of a queue.
func (m *manager) queue(t *testing.T, name string) *apiv1.Queue {
	t.Helper()
	control, err := client.Control("unix:" + m.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = control.Close() }()
	s, err := control.Status(context.WithoutCancel(t.Context()), &apiv1.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range s.GetQueues() {
		if q.GetName() == name {
			return q
		}
	}
	t.Fatalf("there is no queue %s", name)
	return nil
}
