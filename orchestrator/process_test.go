package orchestrator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// patience bounds every wait of these tests; none of them is decided by it unless something is broken.
const patience = 30 * time.Second

// manager is a droverd process with its own state directory.
type manager struct {
	t       *testing.T
	dir     string // state directory
	config  string
	process *exec.Cmd
	exited  chan struct{}
	output  *transcript
}

// transcript is what a process wrote.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (tr *transcript) Write(p []byte) (int, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.buf.Write(p)
}

func (tr *transcript) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.buf.String()
}

// programs builds what the tests run.
func programs(t *testing.T) (droverd, misbehave, noop string) {
	t.Helper()
	built := testenv.BuildBinaries(t, "orchestrator/cmd/droverd", "plugins/sdk/sdktest/misbehave", "plugins/sdk/sdktest/noop")
	return built[0], built[1], built[2]
}

// setUp writes the configuration of a manager for the queue "misbehave" with these settings, and one for "noop".
func setUp(t *testing.T, redis, managerSettings, queueSettings string) *manager {
	t.Helper()
	_, misbehave, noop := programs(t)
	dir := testenv.ShortDir(t)
	m := &manager{t: t, dir: dir, config: filepath.Join(dir, "drover.yaml")}
	text := fmt.Sprintf(`
manager: {name: test, state_dir: %q, log: {level: debug}%s}
redis: %s
plugins:
  misbehave: {command: [%q]}
  noop: {command: [%q]}
queues:
  misbehave: {plugin: misbehave%s}
  noop: {plugin: noop, max_workers: 2}
`, filepath.Join(dir, "state"), comma(managerSettings), redis, misbehave, noop, comma(queueSettings))
	if err := os.WriteFile(m.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

// replaceWorker makes the queue "misbehave" run another command.
func (m *manager) replaceWorker(command ...string) {
	m.t.Helper()
	text, err := os.ReadFile(m.config)
	if err != nil {
		m.t.Fatal(err)
	}
	_, misbehave, _ := programs(m.t)
	quoted, err := json.Marshal(command)
	if err != nil {
		m.t.Fatal(err)
	}
	changed := strings.Replace(string(text), fmt.Sprintf("command: [%q]", misbehave), "command: "+string(quoted), 1)
	if err := os.WriteFile(m.config, []byte(changed), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func comma(settings string) string {
	if settings == "" {
		return ""
	}
	return ", " + settings
}

// start starts the process and returns when it is up.
func (m *manager) start() *manager {
	m.t.Helper()
	droverd, _, _ := programs(m.t)
	m.output = &transcript{}
	m.process = exec.Command(droverd, "--config", m.config) //nolint:gosec // built by the test; ended by it
	m.process.Stdout, m.process.Stderr = m.output, m.output
	m.process.Env = append(os.Environ(), "TMPDIR="+m.dir)
	m.process.WaitDelay = time.Second
	m.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := m.process.Start(); err != nil {
		m.t.Fatal(err)
	}
	exited, process := make(chan struct{}), m.process
	m.exited = exited
	go func() {
		_ = process.Wait()
		close(exited)
	}()
	m.t.Cleanup(func() {
		_ = process.Process.Kill()
		<-exited
		if m.t.Failed() {
			m.t.Logf("the manager wrote:\n%s", m.output)
		}
	})
	eventually(m.t, "the manager is up", func() error {
		select {
		case <-exited:
			return fmt.Errorf("it ended: %s", m.output)
		default:
		}
		if !strings.Contains(m.output.String(), "Ctrl-C stops it") {
			return errors.New("it is not up")
		}
		return nil
	})
	return m
}

// runOnce runs the process to its end, which must come by itself, and returns its exit code and what it wrote.
func (m *manager) runOnce() (code int, output string) {
	m.t.Helper()
	droverd, _, _ := programs(m.t)
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	process := exec.CommandContext(ctx, droverd, "--config", m.config) //nolint:gosec // built by the test
	written, err := process.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		m.t.Fatal(err)
	}
	return process.ProcessState.ExitCode(), string(written)
}

// signal sends a signal to the manager alone.
func (m *manager) signal(s syscall.Signal) {
	m.t.Helper()
	if err := m.process.Process.Signal(s); err != nil {
		m.t.Fatal(err)
	}
}

// wait returns the exit code.
func (m *manager) wait() int {
	m.t.Helper()
	select {
	case <-m.exited:
		return m.process.ProcessState.ExitCode()
	case <-time.After(patience):
		m.t.Fatalf("the manager does not end; it wrote:\n%s", m.output)
		return -1
	}
}

// stop stops the manager as an operator would, and wants a clean end.
func (m *manager) stop() {
	m.t.Helper()
	m.signal(syscall.SIGTERM)
	if code := m.wait(); code != 0 {
		m.t.Fatalf("the manager ended with %d:\n%s", code, m.output)
	}
}

func (m *manager) socket() string { return filepath.Join(m.dir, "state", "drover.sock") }

// connect returns a client on the manager's socket that lives as long as t.
func (m *manager) connect(t *testing.T) client.Client {
	t.Helper()
	return dial(t, "unix:"+m.socket())
}

// dial returns a client of the API at an address that lives as long as t.
func dial(t *testing.T, address string) client.Client {
	t.Helper()
	c, err := client.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// straight returns a client on Redis.
func straight(t *testing.T, r *testenv.Redis) *direct.Client {
	t.Helper()
	return straightTo(t, r.URL())
}

// straightTo returns a client on the Redis at an address.
func straightTo(t *testing.T, address string) *direct.Client {
	t.Helper()
	c, err := direct.Open(address, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// eventually waits until try returns nil.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // between two looks at a real process
	}
}
