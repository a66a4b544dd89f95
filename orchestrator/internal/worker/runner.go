package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
	"golang.org/x/sys/unix"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
	"github.com/drover-jobs/drover/protocol"
)

// processRunner starts and waits for one process, in place of go-plugin's own, for what that one lacks: a process group, the
// parent-death signal, a lifeline, no inherited input and environment, and output that never blocks (FACTS of go-plugin
// v1.8.0: client.go:659, client.go:802).
type processRunner struct {
	launcher *Launcher
	cmd      *exec.Cmd
	out      *output

	stdout    *io.PipeReader // what go-plugin reads: the first line
	stdoutW   *io.PipeWriter
	lifeline  *os.File // our end; closing it tells the process that we are gone
	readers   []*os.File
	pumps     sync.WaitGroup
	handshake *firstLine

	sockets string      // its own directory; set by adopt
	wanted  credentials // the user to run as
	limits  Rlimits
	strays  strays

	exited    chan struct{} // closed when the process has ended
	done      chan struct{} // closed when the process has been collected
	discarded chan struct{} // closed when nothing is left of it here
	discard   sync.Once
	state     *os.ProcessState

	killing   sync.Mutex
	pid       int  // 0 before the start
	doomed    bool // it was to be killed, perhaps before it was there
	collected bool // the process number may belong to another from now on
}

var _ runner.Runner = (*processRunner)(nil)

// pipeGrace is how long output is still read after the process has ended, at most: a descendant may hold the pipes, and write on. How
// often they are looked at meanwhile is pipeLook. The other two are the same for a run that ended while its process goes on.
const (
	pipeGrace    = 200 * time.Millisecond
	pipeLook     = 2 * time.Millisecond
	catchUpGrace = 10 * time.Millisecond
	catchUpLook  = 100 * time.Microsecond
)

func newRunner(l *Launcher, spec Spec, out *output) *processRunner {
	cmd := exec.Command(spec.Command[0], spec.Command[1:]...) //nolint:gosec // the command is the operator's; its life is not a call's
	if spec.Program != "" {
		cmd.Path, cmd.Err = spec.Program, nil
	}
	cmd.Dir = spec.Dir
	cmd.Env = baseEnvironment()
	if spec.API != "" {
		cmd.Env = append(cmd.Env, protocol.EnvAPI+"="+spec.API)
	}
	for name, value := range spec.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r := &processRunner{launcher: l, cmd: cmd, out: out, limits: spec.Limits, exited: make(chan struct{}), done: make(chan struct{}), discarded: make(chan struct{})}
	r.stdout, r.stdoutW = io.Pipe()
	return r
}

// baseEnvironment is all that a worker gets of the manager's environment: where programs and temporary files are, and a locale.
func baseEnvironment() []string {
	env := []string{"LANG=C.UTF-8"}
	for _, name := range []string{"PATH", "TMPDIR", "TZ"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// adopt takes over what go-plugin wants the process to find in its environment, and the directory of its socket.
func (r *processRunner) adopt(fromPlugin []string, sockets string) {
	r.cmd.Env = append(append(r.cmd.Env, fromPlugin...), reaper.Variable+"="+sockets)
	r.sockets = sockets
}

// Start forks the process and begins to read what it writes.
func (r *processRunner) Start(ctx context.Context) (err error) {
	var opened []*os.File
	defer func() {
		if err != nil {
			closeAll(opened)
		}
	}()
	pipe := func() (reader, writer *os.File, err error) {
		reader, writer, err = os.Pipe()
		if err == nil {
			opened = append(opened, reader, writer)
		}
		return reader, writer, err
	}
	outR, outW, err := pipe()
	if err != nil {
		return fmt.Errorf("open a pipe for output: %w", err)
	}
	errR, errW, err := pipe()
	if err != nil {
		return fmt.Errorf("open a pipe for output: %w", err)
	}
	lifeR, lifeW, err := pipe()
	if err != nil {
		return fmt.Errorf("open the lifeline: %w", err)
	}
	const lifelineFD = 3 // the first of ExtraFiles
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = nil, outW, errW
	r.cmd.ExtraFiles = []*os.File{lifeR}
	if r.wanted.Credential != nil && r.cmd.Path != r.Name() {
		program, err := r.openProgram()
		if err != nil {
			return err
		}
		defer func() { _ = program.Close() }()
	}
	r.cmd.Env = append(r.cmd.Env, protocol.EnvLifeline+"="+strconv.Itoa(lifelineFD))

	if err := r.become(outW, errW); err != nil {
		return err
	}
	if err := r.launcher.onThread(ctx, r.fork); err != nil {
		return fmt.Errorf("start %s: %w", r.Name(), r.explain(err))
	}
	closeAll([]*os.File{outW, errW, lifeR})
	r.lifeline = lifeW
	r.readers = []*os.File{outR, errR}
	r.handshake = &firstLine{w: r.stdoutW, rest: r.out, limit: 4 << 10}
	r.pumps.Go(func() { r.readStdout(outR) })
	r.pumps.Go(func() { _, _ = io.Copy(r.out, errR) })
	go r.reap()
	r.appear()
	return nil
}

// readStdout reads until the end of standard output. A process that ends closes it a little earlier: its exit code says more
// than the end of its output, so go-plugin is told of that only afterwards.
func (r *processRunner) readStdout(from *os.File) {
	_, _ = io.Copy(r.handshake, from)
	timer := time.NewTimer(pipeGrace)
	defer timer.Stop()
	select {
	case <-r.exited:
	case <-timer.C:
	}
	r.handshake.finish()
}

// appear makes the process one that can be killed, and kills it if that was asked for while it was being started.
func (r *processRunner) appear() {
	r.killing.Lock()
	defer r.killing.Unlock()
	if r.collected {
		return
	}
	r.pid = r.cmd.Process.Pid
	if r.doomed {
		r.killTree()
	}
}

// reap waits for the process's end, kills what is left of its group while its number is still its own, and collects it.
func (r *processRunner) reap() {
	pid := r.cmd.Process.Pid
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	close(r.exited)
	r.killing.Lock()
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	r.collected = true
	r.killing.Unlock()
	_ = r.cmd.Wait() // its pipes are files of ours, so it waits for nothing else
	r.launcher.collected(pid)
	r.state = r.cmd.ProcessState
	go r.sweep() // beside the rest: it reads all of /proc and removes files, and the tasks of the process wait for neither
	r.readOut()
	_ = r.stdoutW.CloseWithError(io.EOF)
	closeAll(append(r.readers, r.lifeline))
	r.out.finish()
	close(r.done)
}

// readOut reads what the process had written when it ended. It does not wait for the end of the pipes, which a descendant may hold
// that takes its time to be gone: the tasks of the process wait for this.
func (r *processRunner) readOut() {
	ended := make(chan struct{})
	go func() {
		r.pumps.Wait()
		close(ended)
	}()
	look := time.NewTicker(pipeLook)
	defer look.Stop()
	for deadline := time.Now().Add(pipeGrace); time.Now().Before(deadline) && slices.ContainsFunc(r.readers, func(f *os.File) bool { return unread(f) > 0 }); {
		select {
		case <-ended:
			return
		case <-look.C:
		}
	}
	for _, f := range r.readers {
		_ = f.SetReadDeadline(time.Now())
	}
	<-ended
}

// unread is how many bytes are in a pipe.
func unread(pipe *os.File) (n int64) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if found, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil { //nolint:gosec // a file's number
			n = int64(found)
		}
	})
	return n
}

// written is how many bytes the process has written, read or not; rather fewer than more.
func (r *processRunner) written() int64 {
	n := r.out.written()
	for _, f := range r.readers {
		n += unread(f)
	}
	return n
}

// catchUp waits until what the process has written is read; not for long, since it may go on writing, and others wait.
func (r *processRunner) catchUp() {
	var n int64
	for _, f := range r.readers {
		n += unread(f)
	}
	n += r.out.written()
	for late := time.Now().Add(catchUpGrace); r.out.written() < n && time.Now().Before(late); {
		time.Sleep(catchUpLook)
	}
}

// killGroup sends SIGKILL to the process, its group and all its descendants; nothing once it is collected.
func (r *processRunner) killGroup() {
	r.killing.Lock()
	defer r.killing.Unlock()
	r.doomed = true
	if r.pid != 0 && !r.collected {
		r.killTree()
	}
}

// running reports whether the process has not been collected: its number is its own.
func (r *processRunner) running() bool {
	r.killing.Lock()
	defer r.killing.Unlock()
	return r.pid != 0 && !r.collected
}

// whileAlive returns a context that ends with the process as well.
func (r *processRunner) whileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-r.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Kill ends the process group and waits until the process is collected.
func (r *processRunner) Kill(ctx context.Context) error {
	if r.cmd.Process == nil {
		return nil
	}
	select {
	case <-r.done:
		return nil
	default:
	}
	r.killGroup()
	return r.Wait(ctx)
}

// Wait returns when the process has been collected.
func (r *processRunner) Wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
