package actor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// Manager is a droverd of the run, over all its lives.
type Manager struct {
	Name    string
	dir     string
	program string
	// write returns the configuration of the variant.
	write   func(variant uint64) string
	process *process
	began   int64 // size of the log when this life began
}

// NewManager starts a manager in its own directory below dir. write returns its configuration; socketed below Dir().
func NewManager(ctx context.Context, dir, name, program string, write func(m *Manager, variant uint64) string) (*Manager, error) {
	m := &Manager{Name: name, dir: filepath.Join(dir, name), program: program}
	m.write = func(variant uint64) string { return write(m, variant) }
	if err := os.MkdirAll(m.Temp(), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of manager %s: %w", name, err)
	}
	if err := m.configure(0); err != nil {
		return nil, err
	}
	return m, m.Start(ctx)
}

// State is its state directory.
func (m *Manager) State() string { return filepath.Join(m.dir, "s") }

// Temp is its directory for temporary files, in which its workers' sockets are.
func (m *Manager) Temp() string { return filepath.Join(m.dir, "t") }

// Socket is where clients reach it.
func (m *Manager) Socket() string { return filepath.Join(m.State(), "drover.sock") }

// Log is the file that all its lives write to.
func (m *Manager) Log() string { return filepath.Join(m.dir, "log") }

// PID is the process number of the present life, or of the last.
func (m *Manager) PID() int { return m.process.pid() }

// Alive reports whether the process is there; a frozen one is.
func (m *Manager) Alive() bool { return m.process.alive() }

func (m *Manager) config() string { return filepath.Join(m.dir, "c.yaml") }

// configure replaces the configuration in one step, as an operator's editor does.
func (m *Manager) configure(variant uint64) error {
	fresh := m.config() + ".new"
	if err := os.WriteFile(fresh, []byte(m.write(variant)), 0o600); err != nil {
		return fmt.Errorf("write the configuration of manager %s: %w", m.Name, err)
	}
	return os.Rename(fresh, m.config())
}

// Start begins a new life and returns when the manager takes tasks, or would if Redis answered.
func (m *Manager) Start(ctx context.Context) error {
	if info, err := os.Stat(m.Log()); err == nil {
		m.began = info.Size()
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + m.Temp()}
	var err error
	if m.process, err = launch([]string{m.program, "--config", m.config()}, env, m.dir, m.Log()); err != nil {
		return err
	}
	err = until(ctx, patience, func(context.Context) error {
		if !m.process.alive() {
			return errors.New("it has ended")
		}
		if _, err := os.Stat(m.Socket()); err != nil {
			return err
		}
		written, err := m.written()
		if err == nil && !bytes.Contains(written, []byte("Ctrl-C stops it")) {
			err = errors.New("it is not up")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("manager %s does not start; see %s: %w", m.Name, m.Log(), err)
	}
	return nil
}

// written is what the present life has written.
func (m *Manager) written() (text []byte, err error) {
	f, err := os.Open(m.Log())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(m.began, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// Orphans is what was left of a manager that was killed.
type Orphans struct {
	Manager string
	Left    []Found
	After   time.Duration // for how long they were waited for
}

// Kill ends the manager with SIGKILL, and returns what is still there of its workers' processes after a time.
func (m *Manager) Kill(ctx context.Context, within time.Duration) Orphans {
	mark := "PLUGIN_UNIX_SOCKET_DIR=" + m.Temp()
	m.process.kill()
	orphans := Orphans{Manager: m.Name}
	began := time.Now()
	_ = until(context.WithoutCancel(ctx), within, func(context.Context) error {
		if orphans.Left = Having(mark); len(orphans.Left) > 0 {
			return errors.New("they live")
		}
		return nil
	})
	orphans.After = time.Since(began)
	return orphans
}

// FreezeFor stops the manager for a while, or until ctx ends; its workers go on.
func (m *Manager) FreezeFor(ctx context.Context, d time.Duration) error {
	if err := m.process.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	_ = Rest(ctx, d) // it must go on in any case
	return m.process.signal(syscall.SIGCONT)
}

// Reload writes another variant of the configuration and lets the manager read it.
func (m *Manager) Reload(variant uint64) error {
	if err := m.configure(variant); err != nil {
		return err
	}
	return m.process.signal(syscall.SIGHUP)
}

// Replace lets the manager replace its workers.
func (m *Manager) Replace() error { return m.process.signal(syscall.SIGUSR2) }

// Stop is how a manager obeyed a SIGTERM.
type Stop struct {
	Manager string
	From    int64 // when it was asked
	To      int64 // when it had ended
	Code    int
	Hung    bool // it had to be killed
	// As its report says; -1 when there is no report.
	InHand, Finished, Returned, Left int
	// Processes are what was still there of its workers when it had ended, and Dirs their directories.
	Processes []Found
	Dirs      []string
}

// Took is how long the stop took.
func (s Stop) Took() time.Duration { return time.Duration(s.To - s.From) }

// Stop sends SIGTERM and waits for the end, for a time; then it kills.
func (m *Manager) Stop(within time.Duration) (Stop, error) {
	s := Stop{Manager: m.Name, From: Now()}
	if err := m.process.signal(syscall.SIGTERM); err != nil {
		return s, err
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-m.process.exited:
	case <-timer.C:
		s.Hung = true
		m.process.kill()
	}
	s.To = Now()
	s.Processes = Having("PLUGIN_UNIX_SOCKET_DIR=" + m.Temp())
	s.Dirs, _ = filepath.Glob(filepath.Join(m.Temp(), "drover-sockets-*"))
	s.Code = m.process.cmd.ProcessState.ExitCode()
	written, err := m.written()
	if err != nil {
		return s, fmt.Errorf("read what manager %s reported: %w", m.Name, err)
	}
	s.InHand = lastNumber(written, `msg=stopping in_hand=(\d+)`)
	s.Finished = lastNumber(written, `msg=stopped finished=(\d+)`)
	s.Returned = lastNumber(written, `msg=stopped .*returned=(\d+)`)
	s.Left = lastNumber(written, `msg=stopped .*left=(\d+)`)
	return s, nil
}

// lastNumber returns the last number that the pattern finds, -1 when there is none.
func lastNumber(text []byte, pattern string) int {
	found := regexp.MustCompile(pattern).FindAllSubmatch(text, -1)
	if len(found) == 0 {
		return -1
	}
	n, err := strconv.Atoi(string(found[len(found)-1][1]))
	if err != nil {
		return -1
	}
	return n
}

// Close ends the manager at once.
func (m *Manager) Close() { m.process.kill() }
