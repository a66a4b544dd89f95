package orchestrator_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// A changed program is the current one within seconds: its sum is shown, new workers come before the old ones go, and a task that
// runs goes on to its end in the old one.
func TestProgramIsReplaced(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m, path := withOwnProgram(t, r, "max_workers: 1, min_workers: 1")
	m.start()
	c := straight(t, r)
	long := submit(t, c, "misbehave", map[string]any{"do": "sleep", "ms": 6000, "value": 1})
	eventually(t, "it runs", func() error { return m.busy(t, "misbehave") })
	before := m.workerOf(t, "misbehave")

	fresh := variant(t, "2")
	swap(t, path, fresh, 0o755)
	began := time.Now()
	eventually(t, "the new program is the current one", func() error {
		if p := m.plugin(t, "misbehave"); p.GetSha256() != sumOf(fresh) || p.GetRefused() != "" {
			return fmt.Errorf("it is %s, refused: %q", p.GetSha256(), p.GetRefused())
		}
		return nil
	})
	t.Logf("adopted after %s", time.Since(began))
	eventually(t, "a new worker is beside the old one", func() error {
		if n := len(m.workers(t, "misbehave")); n != 2 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	if ended, err := client.Wait(t.Context(), c, long); err != nil || ended.State != task.Completed || ended.Counters != (task.Counters{}) {
		t.Errorf("the task that ran: %+v, %v", ended, err)
	}
	eventually(t, "the old one has gone", m.wroteLine("ended: replaced-binary,", fmt.Sprintf("pid %d", before)))
	if ended, err := client.Wait(t.Context(), c, submit(t, c, "misbehave", map[string]any{"do": "return", "value": 2})); err != nil || ended.State != task.Completed {
		t.Errorf("the next task: %+v, %v", ended, err)
	}
	m.stop()
}

// A program that is changed for one that does not work is refused, and shown as such; its workers stay, and new ones are started from
// the copy of the last good one. When it is repaired, it is taken.
func TestBadProgramIsRefused(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m, path := withOwnProgram(t, r, "max_workers: 1, min_workers: 1, max_kills: 9")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m.start()
	c := straight(t, r)
	worker := m.workerOf(t, "misbehave")
	for says, bad := range map[string]string{"exit code 3": "#!/bin/sh\nexit 3\n", "handshake": "#!/bin/sh\necho junk\nsleep 60\n"} {
		swap(t, path, []byte(bad), 0o755)
		eventually(t, "it is refused: "+says, func() error {
			if p := m.plugin(t, "misbehave"); p.GetSha256() != sumOf(good) || !strings.Contains(p.GetRefused(), says) {
				return fmt.Errorf("it is %s, refused: %q", p.GetSha256(), p.GetRefused())
			}
			return nil
		})
	}
	if now := m.workerOf(t, "misbehave"); now != worker {
		t.Errorf("the worker was %d and is %d", worker, now)
	}
	kill(t, worker)
	ended, err := client.Wait(t.Context(), c, submit(t, c, "misbehave", map[string]any{"do": "return", "value": 1}))
	if err != nil || ended.State != task.Completed {
		t.Errorf("with the program from the copy: %+v, %v", ended, err)
	}
	refusals := strings.Count(m.output.String(), "the changed program of a plugin is not used")
	if _, err := m.control(t).Resume(t.Context(), &apiv1.ResumeRequest{Queue: "misbehave"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a resume has it tried again", func() error {
		if n := strings.Count(m.output.String(), "the changed program of a plugin is not used"); n <= refusals {
			return fmt.Errorf("it was refused %d times", n)
		}
		return nil
	})
	fresh := variant(t, "3")
	swap(t, path, fresh, 0o755)
	eventually(t, "the repaired one is taken", func() error {
		if p := m.plugin(t, "misbehave"); p.GetSha256() != sumOf(fresh) || p.GetRefused() != "" {
			return fmt.Errorf("it is %s, refused: %q", p.GetSha256(), p.GetRefused())
		}
		return nil
	})
	m.stop()
}

// Whatever is wrong with a program when the manager starts: as long as there is the copy of the one that worked last, its tasks run, and
// the status says why the file is not used. The right file in its place is taken. Another sum in the configuration is no reason to use the
// copy.
func TestBrokenProgramsGoOnFromTheirCopies(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	good, fresh := variant(t, "1"), variant(t, "2")
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "")
	m.rewrite(m.breakagesConfig(r.URL(), sumOf(good)))
	for name := range breakages() {
		swap(t, m.program(name), good, 0o755)
	}
	m.start()
	for name := range breakages() {
		eventually(t, name+" is known", func() error {
			if p := m.plugin(t, name); p.GetSha256() != sumOf(good) || p.GetError() != "" {
				return fmt.Errorf("%s, %s", p.GetSha256(), p.GetError())
			}
			return nil
		})
	}
	m.stop()
	m.breakPrograms(t, good)
	m.start()
	c := straight(t, r)
	for name, b := range breakages() {
		ended, err := client.Wait(t.Context(), c, submit(t, c, name, map[string]any{"do": "return", "value": 1}))
		if err != nil || ended.State != task.Completed || ended.Counters != (task.Counters{}) {
			t.Errorf("%s: %+v, %v", name, ended, err)
		}
		if p := m.plugin(t, name); p.GetSha256() != sumOf(good) || !strings.Contains(p.GetRefused(), b.says) || p.GetError() != "" {
			t.Errorf("%s is %s, refused: %q, error: %q", name, p.GetSha256(), p.GetRefused(), p.GetError())
		}
	}
	for name := range breakages() {
		repaired := fresh
		if name == "wrong-sum" {
			repaired = good
		}
		swap(t, m.program(name), repaired, 0o755)
		eventually(t, name+" is taken", func() error {
			if p := m.plugin(t, name); p.GetSha256() != sumOf(repaired) || p.GetRefused() != "" {
				return fmt.Errorf("it is %s, refused: %q", p.GetSha256(), p.GetRefused())
			}
			return nil
		})
	}
	m.stop()
	m.breakPrograms(t, good)
	m.rewrite(m.breakagesConfig(r.URL(), sumOf([]byte("another"))))
	m.start()
	eventually(t, "a copy with another sum than the pinned one is not used", func() error {
		if q := m.queue(t, "wrong-sum"); q.GetState() != "circuit-open" || !strings.Contains(q.GetReason(), "its SHA-256 is") {
			return fmt.Errorf("it is %s: %s", q.GetState(), q.GetReason())
		}
		return nil
	})
	if p := m.plugin(t, "missing"); p.GetSha256() != sumOf(fresh) {
		t.Errorf("the one that was taken last is %s, and not %s", sumOf(fresh), p.GetSha256())
	}
	m.stop()
}

// breakPrograms does to each program what its name says.
func (m *manager) breakPrograms(t *testing.T, good []byte) {
	t.Helper()
	for name, b := range breakages() {
		content := []byte(b.content)
		switch {
		case b.mode == 0:
			if err := os.Remove(m.program(name)); err != nil {
				t.Fatal(err)
			}
			continue
		case b.content == "":
			content = good
		}
		swap(t, m.program(name), content, b.mode)
	}
}

// breakages are what can be wrong with a program, and what is said of it.
func breakages() map[string]struct {
	content string // empty is the good one
	mode    os.FileMode
	says    string
} {
	return map[string]struct {
		content string
		mode    os.FileMode
		says    string
	}{
		"missing":        {says: "no such file"},
		"not-executable": {mode: 0o600, says: "permission denied"},
		"wrong-sum":      {content: "something else", mode: 0o755, says: "its SHA-256 is"},
		"other-protocol": {content: "#!/bin/sh\necho '1|77|unix|/tmp/x|grpc'\nsleep 60\n", mode: 0o755, says: "version"},
		"junk-first":     {content: "#!/bin/sh\necho hello\nsleep 60\n", mode: 0o755, says: "handshake"},
		"exits-at-once":  {content: "#!/bin/sh\necho 'bad luck' >&2\nexit 3\n", mode: 0o755, says: "bad luck"},
	}
}

// Whatever is wrong with a program when the manager starts: its queue pauses and says why, its tasks spend no attempt, the other
// queues go on, and putting the right file there is enough for everything to go on.
func TestBrokenProgramsPauseTheirQueues(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	good := variant(t, "1")
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "")
	m.rewrite(m.breakagesConfig(r.URL(), sumOf(good)))
	for name := range breakages() {
		swap(t, m.program(name), good, 0o755)
	}
	m.start() // so that the queues are known
	m.stop()
	if err := os.RemoveAll(filepath.Join(m.dir, "state", "programs")); err != nil { // no copy of a good one
		t.Fatal(err)
	}
	c := straight(t, r)
	var ids []task.ID
	for name := range breakages() {
		ids = append(ids, submit(t, c, name, map[string]any{"do": "return", "value": 1}))
	}
	m.breakPrograms(t, good)
	m.start()
	for name, b := range breakages() {
		eventually(t, name+" pauses its queue", func() error {
			if q := m.queue(t, name); q.GetState() != "circuit-open" || !strings.Contains(q.GetReason(), b.says) {
				return fmt.Errorf("it is %s: %s", q.GetState(), q.GetReason())
			}
			return nil
		})
	}
	if ended, err := client.Wait(t.Context(), c, submit(t, c, "noop", map[string]any{})); err != nil || ended.State != task.Completed {
		t.Errorf("another queue: %+v, %v", ended, err)
	}
	for name := range breakages() {
		swap(t, m.program(name), good, 0o755)
	}
	ended, err := client.WaitAll(t.Context(), c, ids...)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ended {
		if e.State != task.Completed || e.Counters != (task.Counters{}) || e.Attempts != 1 {
			t.Errorf("%s: %s, %d attempts, %+v", e.ID, e.State, e.Attempts, e.Counters)
		}
	}
	m.stop()
}

// breakagesConfig has a queue and a plugin for each breakage.
func (m *manager) breakagesConfig(redis, sum string) string {
	_, _, noop := programs(m.t)
	plugins, queues := fmt.Sprintf("  noop: {command: [%q]}\n", noop), "  noop: {plugin: noop}\n"
	for name := range breakages() {
		pin := ""
		if name == "wrong-sum" {
			pin = ", sha256: " + sum
		}
		plugins += fmt.Sprintf("  %s: {command: [%q]%s}\n", name, m.program(name), pin)
		queues += fmt.Sprintf("  %s: {plugin: %s}\n", name, name)
	}
	return fmt.Sprintf("manager: {name: test, state_dir: %q, log: {level: debug}}\nredis: {address: %q}\nplugins:\n%squeues:\n%s",
		filepath.Join(m.dir, "state"), redis, plugins, queues)
}

func (m *manager) program(name string) string { return filepath.Join(m.dir, "program-"+name) }

// withOwnProgram is a manager whose queue "misbehave" has a program file of its own.
func withOwnProgram(t *testing.T, r *testenv.Redis, settings string) (m *manager, path string) {
	t.Helper()
	m = setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", settings)
	path = m.program("own")
	swap(t, path, variant(t, "1"), 0o755)
	m.replaceWorker(path)
	return m, path
}

// variant is the program misbehave with other content: what follows an ELF file is not loaded.
func variant(t *testing.T, name string) []byte {
	t.Helper()
	_, misbehave, _ := programs(t)
	data, err := os.ReadFile(misbehave) //nolint:gosec // built by the test
	if err != nil {
		t.Fatal(err)
	}
	return append(data, name...)
}

// swap puts a file in the place of another at once.
func swap(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	beside := path + ".new"
	if err := errors.Join(os.WriteFile(beside, content, mode), os.Chmod(beside, mode), os.Rename(beside, path)); err != nil {
		t.Fatal(err)
	}
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// plugin is what the status says of a plugin.
func (m *manager) plugin(t *testing.T, name string) *apiv1.Plugin {
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
	for _, p := range s.GetPlugins() {
		if p.GetName() == name {
			return p
		}
	}
	t.Fatalf("there is no plugin %s", name)
	return nil
}
