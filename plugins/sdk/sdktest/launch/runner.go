package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/drover-jobs/drover/protocol"
)

const (
	// lifelineFD is the first of a command's ExtraFiles.
	lifelineFD = 3
	// longestHandshake bounds the first line, in bytes.
	longestHandshake = 4 << 10
	// pipeGrace is how long output is still read after the process has ended: something that it started may hold the pipes.
	pipeGrace = 200 * time.Millisecond
)

// process is go-plugin's runner of one process.
type process struct {
	cmd    *exec.Cmd
	out    *output
	stdout *io.PipeReader // what go-plugin reads: the first line
	writer *io.PipeWriter

	exited chan struct{} // closed when the process has been collected
	pumps  sync.WaitGroup

	mu       sync.Mutex
	lifeline *os.File // our end; nil once it is cut
	doomed   bool
}

var _ runner.Runner = (*process)(nil)

func newProcess(cmd *exec.Cmd) *process {
	p := &process{cmd: cmd, out: &output{}, exited: make(chan struct{})}
	p.stdout, p.writer = io.Pipe()
	return p
}

// Start forks the process and begins to read what it writes.
func (p *process) Start(context.Context) (err error) {
	var files []*os.File
	pipe := func() (reader, writer *os.File) {
		if err == nil {
			if reader, writer, err = os.Pipe(); err == nil {
				files = append(files, reader, writer)
			}
		}
		return reader, writer
	}
	outR, outW := pipe()
	errR, errW := pipe()
	lifeR, lifeW := pipe()
	if err == nil {
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = nil, outW, errW
		p.cmd.ExtraFiles = []*os.File{lifeR}
		p.cmd.Env = append(p.cmd.Env, protocol.EnvLifeline+"="+strconv.Itoa(lifelineFD))
		p.cmd.SysProcAttr = attributes()
		err = p.fork(outR, errR)
	}
	if err != nil {
		closeAll(files)
		return fmt.Errorf("start %s: %w", p.Name(), err)
	}
	closeAll([]*os.File{outW, errW, lifeR})
	p.mu.Lock()
	p.lifeline = lifeW
	p.mu.Unlock()
	return nil
}

// fork starts the process from a thread that lives as long as the process does, since the kernel's parent-death signal
// follows the thread (golang/go#27505).
func (p *process) fork(outR, errR *os.File) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		p.mu.Lock()
		err := p.cmd.Start()
		p.mu.Unlock()
		if err == nil {
			handshake := &firstLine{w: p.writer, rest: p.out, limit: longestHandshake}
			p.pumps.Go(func() {
				_, _ = io.Copy(handshake, outR) // ends with the pipe
				select {                        // its exit code says more than the end of its output
				case <-p.exited:
				case <-time.After(pipeGrace):
				}
				handshake.finish()
			})
			p.pumps.Go(func() { _, _ = io.Copy(p.out, errR) }) // ends with the pipe
		}
		started <- err
		if err == nil {
			p.collect(outR, errR)
		}
	}()
	return <-started
}

// collect waits for the process's end, and for its output a little longer.
func (p *process) collect(outR, errR *os.File) {
	_ = p.cmd.Wait() // ProcessState has it all
	p.mu.Lock()
	p.doomed = true
	p.mu.Unlock()
	close(p.exited)
	held := time.AfterFunc(pipeGrace, func() { closeAll([]*os.File{outR, errR}) })
	p.pumps.Wait()
	held.Stop()
	closeAll([]*os.File{outR, errR})
}

// Wait waits for the process's end.
func (p *process) Wait(context.Context) error {
	<-p.exited
	return nil
}

// Kill kills the process and its group.
func (p *process) Kill(context.Context) error {
	p.signalGroup(syscall.SIGKILL)
	return nil
}

// signalGroup sends a signal to the whole group, unless the process has been collected.
func (p *process) signalGroup(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd.Process != nil && !p.doomed {
		_ = syscall.Kill(-p.cmd.Process.Pid, s) // an error says that it has ended
	}
}

// cut closes our end of the lifeline.
func (p *process) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lifeline != nil {
		_ = p.lifeline.Close() // a pipe; nothing is lost
		p.lifeline = nil
	}
}

// Stdout yields the first line that the process writes.
func (p *process) Stdout() io.ReadCloser { return p.stdout }

// Stderr yields nothing: the output is kept here.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Diagnose adds nothing: Start's errors say what the process wrote.
func (p *process) Diagnose(context.Context) string { return "" }

// Name is the path of the program.
func (p *process) Name() string { return p.cmd.Path }

// ID is the process's number; empty before the start.
func (p *process) ID() string {
	if p.cmd.Process == nil {
		return ""
	}
	return strconv.Itoa(p.cmd.Process.Pid)
}

// PluginToHost changes nothing: both sides see the same file system.
func (p *process) PluginToHost(network, address string) (hostNet, hostAddr string, err error) {
	return network, address, nil
}

// HostToPlugin is the counterpart of PluginToHost.
func (p *process) HostToPlugin(network, address string) (pluginNet, pluginAddr string, err error) {
	return network, address, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // pipes; one that is closed already says so
	}
}
