package orchestrator_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// SIGHUP takes the settings of the file, also while tasks run; a file that is not sound changes nothing and says why.
func TestHangupReloads(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1, buffer: 16").start()
	c := straight(t, r)
	var ids []task.ID
	for i := range 12 {
		s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "sleep", "ms": 400, "value": i})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	good, err := os.ReadFile(m.config)
	if err != nil {
		t.Fatal(err)
	}
	m.rewrite(strings.Replace(string(good), "max_workers: 1", "max_workers: 0", 1))
	m.signal(syscall.SIGHUP)
	eventually(t, "the bad file is refused", m.wrote("the configuration was not reloaded", "max_workers"))
	m.rewrite(strings.Replace(string(good), "max_workers: 1", "max_workers: 3", 1))
	m.signal(syscall.SIGHUP)
	eventually(t, "three workers run", func() error {
		if n := len(childrenOf(t, m.process.Process.Pid, "misbehave")); n != 3 {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	ended, err := client.WaitAll(t.Context(), c, ids...)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ended {
		if e.State != task.Completed || e.Counters != (task.Counters{}) {
			t.Errorf("%s: %s, %+v", e.ID, e.State, e.Counters)
		}
	}
	m.stop()
}

// SIGUSR1 writes the status to the log; SIGUSR2 replaces the workers without costing a running task anything.
func TestUserSignals(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 2, min_workers: 2").start()
	c := straight(t, r)
	workers := func() []int { return childrenOf(t, m.process.Process.Pid, "misbehave") }
	eventually(t, "two workers run", func() error {
		if len(workers()) != 2 {
			return errors.New("they do not")
		}
		return nil
	})
	before := workers()
	s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "sleep", "ms": 700, "value": 1})
	if err != nil {
		t.Fatal(err)
	}
	m.signal(syscall.SIGUSR1)
	eventually(t, "the status is logged", m.wrote("status of queue", "status of worker"))
	m.signal(syscall.SIGUSR2)
	eventually(t, "both were replaced", func() error {
		now := workers()
		if len(now) != 2 || slices.Contains(now, before[0]) || slices.Contains(now, before[1]) {
			return fmt.Errorf("there are %v, there were %v", now, before)
		}
		return nil
	})
	ended, err := client.Wait(t.Context(), c, s.ID)
	if err != nil || ended.State != task.Completed || ended.Counters != (task.Counters{}) {
		t.Errorf("%+v, %v", ended, err)
	}
	m.stop()
}

// rewrite replaces the configuration.
func (m *manager) rewrite(text string) {
	m.t.Helper()
	if err := os.WriteFile(m.config, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// wrote returns what eventually waits for: that the manager's log has all of these.
func (m *manager) wrote(parts ...string) func() error {
	return func() error {
		for _, part := range parts {
			if !strings.Contains(m.output.String(), part) {
				return fmt.Errorf("%q is not in the log", part)
			}
		}
		return nil
	}
}
