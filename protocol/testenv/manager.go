package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Manager is a manager with everything embedded, for runnable examples: they have no test to hang it on, so one serves all of a
// test process, and TestMain stops it. Its queue "work" runs the program plugins/sdk/sdktest/misbehave.
type Manager struct {
	// Address is that of its API, as client.Dial takes it.
	Address string
	// RedisURL is its broker, as direct.Open takes it.
	RedisURL string

	dir     string
	process *exec.Cmd
}

const (
	managerStart = time.Minute // in which a manager must be up, on a slow machine
	managerLook  = 20 * time.Millisecond
)

// shared is the manager of this test process.
//
//nolint:gochecknoglobals // as with built: one for each test process is the purpose
var shared struct {
	mu      sync.Mutex
	manager *Manager
}

// SharedManager starts the manager of this test process when it is first called. It panics when there can be none.
func SharedManager() *Manager {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.manager == nil {
		shared.manager = startManager(alone{})
	}
	return shared.manager
}

// StopSharedManager stops the manager of SharedManager, if there is one.
func StopSharedManager() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if m := shared.manager; m != nil {
		_ = m.process.Process.Signal(syscall.SIGTERM) // it has ended if not
		_ = m.process.Wait()                          // as it likes
		_ = os.RemoveAll(m.dir)                       // a temporary one
		shared.manager = nil
	}
}

// alone stands for a test where there is none.
type alone struct{ testing.TB }

func (alone) Helper()                           {}
func (alone) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (alone) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func startManager(t testing.TB) *Manager {
	programs := BuildBinaries(t, "orchestrator/cmd/droverd", "plugins/sdk/sdktest/misbehave")
	dir, err := os.MkdirTemp("/tmp", "drv")
	if err != nil {
		t.Fatalf("make a directory for a manager: %v", err)
	}
	state, config := filepath.Join(dir, "state"), filepath.Join(dir, "drover.yaml")
	text := fmt.Sprintf("manager: {name: example, state_dir: %q, drain_timeout: 100ms}\nredis: {embedded: true}\n"+
		"plugins: {misbehave: {command: [%q]}}\nqueues: {work: {plugin: misbehave, slots: 8}}\n", state, programs[1])
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatalf("write the configuration of a manager: %v", err)
	}
	m := &Manager{Address: "unix:" + filepath.Join(state, "drover.sock"), dir: dir, process: exec.Command(programs[0], "--config", config)} //nolint:gosec // just built
	log, err := os.Create(filepath.Join(dir, "log"))                                                                                        //nolint:gosec // just made
	if err != nil {
		t.Fatalf("write the log of a manager: %v", err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	m.process.Stderr = log
	if err := m.process.Start(); err != nil {
		t.Fatalf("start a manager: %v", err)
	}
	m.RedisURL = m.broker(t)
	return m
}

// answers reports whether the manager serves its API, which it does once clients know its queues.
func (m *Manager) answers() bool {
	conn, err := new(net.Dialer).DialContext(context.Background(), "unix", strings.TrimPrefix(m.Address, "unix:"))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(managerStart)) // who connects early waits
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.0\r\n\r\n"); err != nil {
		return false
	}
	answer, err := io.ReadAll(conn)
	return err == nil && len(answer) > 0
}

// broker waits until the manager answers, and returns where its broker is.
func (m *Manager) broker(t testing.TB) string {
	for began := time.Now(); time.Since(began) < managerStart; <-time.After(managerLook) {
		var access struct{ Address, Password string }
		data, err := os.ReadFile(filepath.Join(m.dir, "state", "redis.json"))
		if err != nil || json.Unmarshal(data, &access) != nil {
			continue
		}
		if m.answers() {
			return (&url.URL{Scheme: "redis", User: url.UserPassword("default", access.Password), Host: access.Address, Path: "/0"}).String()
		}
	}
	log, _ := os.ReadFile(filepath.Join(m.dir, "log"))
	t.Fatalf("a manager is not up after %s:\n%s", managerStart, log)
	return ""
}
