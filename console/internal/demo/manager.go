package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// manager is the process of the demonstration's manager, and the connections to it.
type manager struct {
	places  places
	process *exec.Cmd
	exited  chan struct{} // closed when it has been waited for
	tasks   client.Client
	control *client.ControlClient
}

const (
	startTime = 15 * time.Second
	stopTime  = 15 * time.Second
	pollEvery = 20 * time.Millisecond
)

// startManager starts droverd and returns when it takes tasks.
func startManager(ctx context.Context, o Options, p places) (*manager, error) {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a log for the manager: %w", err)
	}
	defer log.Close()
	program := filepath.Join(o.Bin, "droverd")
	cmd := exec.Command(program, "--config", p.config) //nolint:gosec // our own program; stopped by SIGTERM, not by a context
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the demonstration, which stops the manager itself
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w; build it with: make build", program, err)
	}
	m := &manager{places: p, process: cmd, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the exit code is read from ProcessState
		close(m.exited)
	}()
	if err := m.connect(ctx); err != nil {
		return nil, errors.Join(err, m.kill())
	}
	return m, nil
}

// connect polls until the manager takes tasks.
func (m *manager) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	address := "unix:" + m.places.socket
	var err error
	if m.tasks, err = client.Dial(address); err != nil {
		return fmt.Errorf("dial the manager: %w", err)
	}
	if m.control, err = client.Control(address); err != nil {
		return fmt.Errorf("dial the manager: %w", err)
	}
	for {
		s, err := m.status(ctx)
		if err == nil && s.GetManager().GetState() == "running" {
			return nil
		}
		select {
		case <-m.exited:
			return fmt.Errorf("the manager ended while starting (%s)", m.process.ProcessState)
		default:
		}
		if !pause(ctx, pollEvery) {
			return fmt.Errorf("the manager is not up after %s (%s): %w", startTime, s.GetManager().GetState(), errors.Join(err, ctx.Err()))
		}
	}
}

func (m *manager) status(ctx context.Context) (*apiv1.StatusResponse, error) {
	return m.control.Status(ctx, &apiv1.StatusRequest{})
}

// stop asks the manager to end and returns its exit code.
func (m *manager) stop() (int, error) {
	if err := m.process.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, fmt.Errorf("send SIGTERM to the manager: %w", err)
	}
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-m.exited:
		return m.process.ProcessState.ExitCode(), nil
	case <-timer.C:
		return 0, fmt.Errorf("the manager did not stop within %s of SIGTERM", stopTime)
	}
}

// kill ends the manager at once if it still runs, and closes the connections.
func (m *manager) kill() error {
	var err error
	if m.tasks != nil {
		err = m.tasks.Close()
	}
	if m.control != nil {
		err = errors.Join(err, m.control.Close())
	}
	select {
	case <-m.exited:
	default:
		_ = m.process.Process.Kill() // it may have ended just now
		<-m.exited
	}
	return err
}

// report is the last line that the manager wrote.
func (m *manager) report() string {
	lines := m.tail(1)
	if len(lines) == 0 {
		return ""
	}
	return lines[0]
}

// tail is the last lines of the manager's log.
func (m *manager) tail(n int) []string {
	text, err := os.ReadFile(m.places.log)
	if err != nil {
		return []string{err.Error()}
	}
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return lines[max(0, len(lines)-n):]
}

// alive reports whether a process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
