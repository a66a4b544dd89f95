package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// An ending is how a worker of a queue of its own is brought to an end for one reason.
type ending struct {
	settings string         // of the queue
	plugin   string         // empty is misbehave
	task     string         // that is submitted; empty for none
	file     string         // settings that a SIGHUP brings; empty for none
	signal   syscall.Signal // to the worker; 0 for none
}

func endings() map[job.ExitReason]ending {
	return map[job.ExitReason]ending{
		job.ExitIdle:          {settings: "worker_idle: 100ms", task: `{"do": "return"}`},
		job.ExitLifetime:      {settings: "min_workers: 1, worker_lifetime: 1s"},
		job.ExitMaxTasks:      {settings: "worker_max_tasks: 1", task: `{"do": "return"}`},
		job.ExitMemorySoft:    {settings: "memory_soft: 128MiB", task: `{"do": "leak", "bytes": 200000000, "ms": 1000}`},
		job.ExitMemoryMax:     {settings: "memory_max: 128MiB, max_kills: 1", task: `{"do": "leak", "bytes": 200000000, "ms": 20000}`},
		job.ExitTaskTimeout:   {settings: "task_timeout: 200ms, kill_grace: 100ms, max_kills: 1", task: `{"do": "ignore-cancel", "ms": 20000}`},
		job.ExitIgnoredCancel: {settings: "kill_grace: 100ms", task: `{"do": "ignore-cancel", "ms": 20001}`},
		job.ExitCrash:         {settings: "max_kills: 1", task: `{"do": "exit", "code": 3}`},
		job.ExitPanic:         {settings: "max_failures: 1", task: `{"do": "panic"}`},
		job.ExitFailedStart:   {plugin: "broken"},
		job.ExitScaleDown:     {settings: "min_workers: 2, max_workers: 2", file: "min_workers: 1, max_workers: 1"},
		job.ExitOperator:      {settings: "min_workers: 1"},
		job.ExitReload:        {settings: "min_workers: 1"},
		job.ExitLeft:          {settings: "min_workers: 1", signal: syscall.SIGTERM},
		job.ExitStop:          {settings: "min_workers: 1"},
	}
}

// Each reason for the end of a worker comes about in real processes, and is the one that is told.
func TestEveryReasonOfAnEnd(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "")
	m.rewrite(m.endingsConfig(r.URL(), false))
	m.start()
	c := m.connect(t)
	for reason, e := range endings() {
		if e.task == "" {
			continue
		}
		submitted, err := c.Submit(t.Context(), string(reason), json.RawMessage(e.task))
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		if reason == job.ExitIgnoredCancel {
			eventually(t, "the task to cancel runs", func() error { return m.busy(t, string(reason)) })
			if _, err := c.Cancel(t.Context(), submitted.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	for reason, e := range endings() {
		if e.signal != 0 {
			if err := syscall.Kill(m.workerOf(t, string(reason)), e.signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.workerOf(t, string(job.ExitOperator))
	killed := m.workers(t, string(job.ExitOperator))[0].GetId()
	if _, err := m.control(t).Kill(t.Context(), &apiv1.KillRequest{Worker: killed}); err != nil {
		t.Fatal(err)
	}
	m.workerOf(t, string(job.ExitScaleDown))
	m.rewrite(m.endingsConfig(r.URL(), true))
	m.signal(syscall.SIGHUP)
	for reason := range endings() {
		switch reason {
		case job.ExitReload, job.ExitStop: // later
		case job.ExitFailedStart:
			eventually(t, "a failed start is told", m.wroteLine("a worker did not start", "queue="+string(reason)))
		default:
			eventually(t, string(reason)+" is told", m.wroteLine("ended: "+string(reason)+",", "queue="+string(reason)))
		}
	}
	m.signal(syscall.SIGUSR2)
	eventually(t, "a reload is told", m.wroteLine("ended: reload,", "queue=reload"))
	for reason := range endings() {
		if reason == job.ExitStop {
			continue
		}
		if exits := m.queue(t, string(reason)).GetExits(); exits[string(reason)] == 0 {
			t.Errorf("the status of queue %s counts %v", reason, exits)
		}
	}
	// Only then is the worker that is left one that stays until the stop.
	eventually(t, "the worker of stop has been replaced", m.wroteLine("ended: reload,", "queue=stop"))
	m.workerOf(t, string(job.ExitStop))
	m.stop()
	if err := m.wroteLine("ended: stop,", "queue=stop")(); err != nil {
		t.Error(err)
	}
}

// endingsConfig is a configuration with a queue for each reason.
func (m *manager) endingsConfig(redis string, later bool) string {
	_, misbehave, noop := programs(m.t)
	var text strings.Builder
	fmt.Fprintf(&text, `
manager: {name: test, state_dir: %q, log: {level: debug}}
redis: {address: %q}
plugins:
  misbehave: {command: [%q]}
  noop: {command: [%q]}
  broken: {command: ["/bin/false"]}
queues:
`, filepath.Join(m.dir, "state"), redis, misbehave, noop)
	for reason, e := range endings() {
		plugin, settings := e.plugin, e.settings
		if plugin == "" {
			plugin = "misbehave"
		}
		if later && e.file != "" {
			settings = e.file
		}
		fmt.Fprintf(&text, "  %s: {plugin: %s%s}\n", reason, plugin, comma(settings))
	}
	return text.String()
}

// wroteLine returns what eventually waits for: that one line of the manager's log has all of these.
func (m *manager) wroteLine(parts ...string) func() error {
	return func() error {
		for line := range strings.Lines(m.output.String()) {
			missing := false
			for _, part := range parts {
				missing = missing || !strings.Contains(line, part)
			}
			if !missing {
				return nil
			}
		}
		return fmt.Errorf("no line of the log has %q", parts)
	}
}

// workers are the queue's workers as the status has them.
func (m *manager) workers(t *testing.T, queue string) []*apiv1.Worker {
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
	var workers []*apiv1.Worker
	for _, w := range s.GetWorkers() {
		if w.GetQueue() == queue {
			workers = append(workers, w)
		}
	}
	return workers
}

// workerOf waits for a worker of the queue and returns its process number.
func (m *manager) workerOf(t *testing.T, queue string) (pid int) {
	t.Helper()
	eventually(t, "there is a worker of "+queue, func() error {
		workers := m.workers(t, queue)
		if len(workers) == 0 {
			return fmt.Errorf("there is none")
		}
		pid = int(workers[0].GetPid())
		return nil
	})
	return pid
}

// busy reports, as an error, that no task runs in the queue.
func (m *manager) busy(t *testing.T, queue string) error {
	t.Helper()
	for _, w := range m.workers(t, queue) {
		if w.GetRunning() > 0 {
			return nil
		}
	}
	return fmt.Errorf("no worker of %s is busy", queue)
}
