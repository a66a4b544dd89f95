package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

const (
	readyTimeout = 20 * time.Second // for a server to answer, on a machine that runs many tests at once
	stopTimeout  = 20 * time.Second // for a clean stop, before it is a failure of the test
	pollEvery    = 5 * time.Millisecond
	portAttempts = 10
)

// errPortTaken says that the server ended, or another one answered, before this one was ready.
var errPortTaken = errors.New("the server did not come up on its port")

// server is one child process and what is needed to start it again. Its methods are called by one goroutine.
type server struct {
	t       testing.TB
	name    string // of the program
	dir     string
	command func() []string             // program and arguments of the next start
	probe   func(pid int) (bool, error) // true when the process pid answers; an error when another one does
	cmd     *exec.Cmd
	exited  chan struct{} // closed when cmd has been waited for
}

// lookPath finds the program or fails the test with what to do about it.
func lookPath(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is not installed: run `make test`, which installs what the tests need, or install the package %s",
			program, program)
	}
	return path
}

// launch starts the process and waits until it answers.
func (s *server) launch() error {
	args := s.command()
	out, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", s.name, err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	cmd.SysProcAttr = processAttr()
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel kills the child when the thread that started it ends, so that thread is kept until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // every end of the process is expected: the tests kill it
		}
		_ = out.Close()
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	s.cmd, s.exited = cmd, exited
	return s.awaitReady()
}

func (s *server) awaitReady() error {
	deadline := time.NewTimer(readyTimeout)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		ready, err := s.probe(s.cmd.Process.Pid)
		if err != nil {
			return fmt.Errorf("%w: %w", errPortTaken, err)
		}
		if ready {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("%w: %s ended; its last lines:\n%s", errPortTaken, s.name, s.tail())
		case <-deadline.C:
			return fmt.Errorf("%s did not answer within %s; its last lines:\n%s", s.name, readyTimeout, s.tail())
		case <-poll.C:
		}
	}
}

// launchAnywhere lets the server try other ports until it has one for itself.
func (s *server) launchAnywhere(nextPort func()) {
	s.t.Helper()
	s.t.Cleanup(s.finish)
	var err error
	for range portAttempts {
		nextPort()
		if err = s.launch(); err == nil {
			return
		}
		s.kill()
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	s.t.Fatalf("start %s: %v", s.name, err)
}

// relaunch starts the server again where it was, since its clients know that address.
func (s *server) relaunch() {
	s.t.Helper()
	if s.running() {
		s.t.Fatalf("%s is already running", s.name)
	}
	deadline := time.Now().Add(readyTimeout)
	for {
		err := s.launch()
		if err == nil {
			return
		}
		s.kill()
		if !errors.Is(err, errPortTaken) || time.Now().After(deadline) {
			s.t.Fatalf("start %s again: %v", s.name, err)
		}
	}
}

func (s *server) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// pid is 0 while the server is down.
func (s *server) pid() int {
	if !s.running() {
		return 0
	}
	return s.cmd.Process.Pid
}

// kill ends the server and its children at once and returns when it has been waited for.
func (s *server) kill() {
	if !s.running() {
		return
	}
	s.signal(syscall.SIGKILL)
	<-s.exited
}

// stop asks the server to end and returns when it has.
func (s *server) stop() {
	s.t.Helper()
	if !s.running() {
		return
	}
	s.signal(syscall.SIGTERM)
	deadline := time.NewTimer(stopTimeout)
	defer deadline.Stop()
	select {
	case <-s.exited:
	case <-deadline.C:
		s.kill()
		s.t.Fatalf("%s did not stop within %s of SIGTERM; its last lines:\n%s", s.name, stopTimeout, s.tail())
	}
}

// signal reaches the whole process group; one that is gone already is no error.
func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		s.t.Errorf("send %s to %s: %v", sig, s.name, err)
	}
}

func (s *server) finish() {
	s.kill()
	if s.t.Failed() {
		s.t.Logf("last lines of %s:\n%s", s.name, s.tail())
	}
}

func (s *server) logPath() string { return filepath.Join(s.dir, "log") }

// tail is the end of what the server wrote, 4 KB at most.
func (s *server) tail() string {
	const most = 4 << 10
	content, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	if len(content) > most {
		content = content[len(content)-most:]
	}
	return string(bytes.TrimSpace(content))
}
