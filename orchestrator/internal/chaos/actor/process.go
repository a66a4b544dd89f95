package actor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lookEvery is how often a condition of another process is looked at.
const lookEvery = 10 * time.Millisecond

// Now is the time of the kernel's monotonic clock in nanoseconds, which all processes share.
func Now() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0 // the clock is always there
	}
	return now.Nano()
}

// process is one child.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// launch starts a command whose output is appended to a file.
func launch(command, env []string, dir, output string) (*process, error) {
	out, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // in the run's own directory
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", command[0], err)
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // programs of the run; ended by their actor
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
	cmd.SysProcAttr = attributes()
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel kills the child when the thread that started it ends, so that thread is kept until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // every end is possible here
		}
		_ = out.Close()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// signal sends a signal to the process alone; one that is gone is no error.
func (p *process) signal(s syscall.Signal) error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to process %d: %w", s, p.pid(), err)
	}
	return nil
}

// kill ends the process and waits for it.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL)
	<-p.exited
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// until waits until try succeeds, the time is up or ctx ends; the last error says what was wrong.
func until(ctx context.Context, patience time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if Rest(ctx, lookEvery) != nil {
			return fmt.Errorf("not within %s: %w", patience, err)
		}
	}
}

// Rest waits for a while, or until ctx ends and returns its error.
func Rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
