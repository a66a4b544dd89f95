package child

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Spec says what to start.
type Spec struct {
	// Command is the program, with its path, and its arguments.
	Command []string
	// Dir is the working directory; empty for the worker's.
	Dir string
	// Env is the whole environment.
	Env []string
	// Stderr is where the child's standard error goes, in whole lines where it has any.
	Stderr io.Writer
}

// Child is a running program.
type Child struct {
	// Stdin is closed by whoever writes to it.
	Stdin *os.File
	// Stdout has an end soon after the child's. It is closed by whoever reads it.
	Stdout *os.File

	cmd    *exec.Cmd
	mark   string
	stderr *tail
	done   chan struct{} // closed when the child has been collected, and what it left has been killed
}

// streamGrace is how long the streams of a child are still read after its end, when somebody else holds them open.
const streamGrace = time.Second

// markName is the variable of a child's environment that tells its descendants from others.
const markName = "DROVER_CHILD"

// Start starts a child.
func (l *Launcher) Start(spec Spec) (*Child, error) {
	var pipes [3][2]*os.File
	closeAll := func() {
		for _, pipe := range pipes {
			for _, end := range pipe {
				if end != nil {
					_ = end.Close()
				}
			}
		}
	}
	for i := range pipes {
		var err error
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			closeAll()
			return nil, fmt.Errorf("open a pipe to %s: %w", spec.Command[0], err)
		}
	}
	c := &Child{mark: markName + "=" + rand.Text(), stderr: &tail{to: spec.Stderr}, done: make(chan struct{})}
	c.cmd = exec.Command(spec.Command[0], spec.Command[1:]...) //nolint:gosec // the command is the operator's
	c.cmd.Dir = spec.Dir
	c.cmd.Env = slices.Concat(spec.Env, []string{c.mark})
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = pipes[0][0], pipes[1][1], pipes[2][1]
	c.cmd.SysProcAttr = attributes()
	if err := l.onThread(c.cmd.Start); err != nil {
		closeAll()
		return nil, fmt.Errorf("start %s: %w", strings.Join(spec.Command, " "), err)
	}
	c.Stdin, c.Stdout = pipes[0][1], pipes[1][0]
	stderr := pipes[2][0]
	for _, theirs := range []*os.File{pipes[0][0], pipes[1][1], pipes[2][1]} {
		_ = theirs.Close()
	}
	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		_, _ = io.Copy(c.stderr, stderr)
		c.stderr.flush()
		_ = stderr.Close()
	}()
	go func() {
		defer l.children.Done()
		c.collect(stderr, pumped)
	}()
	return c, nil
}

// collect waits for the child's end and ends what it left.
func (c *Child) collect(stderr *os.File, pumped <-chan struct{}) {
	_ = c.cmd.Wait() // its streams are files of ours, so it waits for nothing else; State says how it ended
	sweep(c.mark)
	deadline := time.Now().Add(streamGrace)
	_ = stderr.SetReadDeadline(deadline)
	_ = c.Stdout.SetReadDeadline(deadline)
	<-pumped
	close(c.done)
}

// PID is the number of the process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the child has ended and all that it wrote to its standard error has been read.
func (c *Child) Done() <-chan struct{} { return c.done }

// Terminate asks the child to end.
func (c *Child) Terminate() { _ = c.cmd.Process.Signal(syscall.SIGTERM) } // an error says that it has ended

// Kill ends the child, frozen or not.
func (c *Child) Kill() { _ = c.cmd.Process.Kill() } // an error says that it has ended

// ExitCode is what the child ended with; -1 when a signal ended it. It counts after Done.
func (c *Child) ExitCode() int { return c.cmd.ProcessState.ExitCode() }

// End says how the child ended, such as "ended with exit code 1". It counts after Done.
func (c *Child) End() string {
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return "was ended by the signal " + status.Signal().String()
	}
	return fmt.Sprintf("ended with exit code %d", c.cmd.ProcessState.ExitCode())
}

// Complain adds a line to the child's standard error, for what it says in the wrong place.
func (c *Child) Complain(line string) { _, _ = c.stderr.Write([]byte(line + "\n")) } // it never fails

// LastLines are the last lines that the child wrote to its standard error, oldest first; at most a few kilobytes.
func (c *Child) LastLines() []string { return c.stderr.lines() }
