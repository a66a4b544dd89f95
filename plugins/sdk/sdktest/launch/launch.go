package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// Spec is what a worker is started with.
type Spec struct {
	Command []string // program and arguments; no shell
	Dir     string   // working directory; empty is this process's
	Env     []string // NAME=value, besides Environment
	// Inherit gives the process this one's whole environment too, which no manager does.
	Inherit bool
	// StartTimeout bounds the start up to the handshake; 0 means a manager's default, 10 s.
	StartTimeout time.Duration
}

// DefaultStartTimeout is a manager's default of the setting start_timeout.
const DefaultStartTimeout = 10 * time.Second

// maxTempRoot is the longest directory, in bytes, that leaves room for a socket: the kernel allows 107 for its path.
const maxTempRoot = 48

// Process is a worker process that has shaken hands.
type Process struct {
	service workerv1.WorkerServiceClient
	client  *plugin.Client
	process *process
	sockets string
}

// Environment is all that a worker gets of its manager's environment: where programs and temporary files are, the time zone,
// and a locale.
func Environment() []string {
	env := []string{"LANG=C.UTF-8"}
	for _, name := range []string{"PATH", "TMPDIR", "TZ"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Start starts the program and shakes hands with it. On an error nothing is left of the process, and the error says what it
// wrote. The end of ctx during the start kills it.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if len(spec.Command) == 0 {
		return nil, errors.New("there is no command to start")
	}
	if spec.StartTimeout <= 0 {
		spec.StartTimeout = DefaultStartTimeout
	}
	cmd := exec.Command(spec.Command[0], spec.Command[1:]...) //nolint:gosec // the caller's command; its life is not a call's
	if cmd.Err != nil {
		return nil, fmt.Errorf("it cannot be started: %w", cmd.Err)
	}
	cmd.Dir, cmd.Env = spec.Dir, Environment()
	if spec.Inherit {
		cmd.Env = append(os.Environ(), cmd.Env...)
	}
	cmd.Env = append(cmd.Env, spec.Env...)
	root := os.TempDir()
	if len(root) > maxTempRoot {
		root = "/tmp"
	}
	sockets, err := os.MkdirTemp(root, "drover")
	if err != nil {
		return nil, fmt.Errorf("make a directory for its socket: %w", err)
	}
	p := &Process{process: newProcess(cmd), sockets: sockets}
	p.client = plugin.NewClient(p.config(spec.StartTimeout))
	stop := context.AfterFunc(ctx, func() { p.process.signalGroup(syscall.SIGKILL) })
	err = p.connect()
	switch givenUp := !stop(); {
	case givenUp:
		p.Close()
		return nil, fmt.Errorf("its start was given up: %w", context.Cause(ctx))
	case err != nil:
		p.Close()
		return nil, p.explain(err, spec.StartTimeout)
	}
	return p, nil
}

func (p *Process) config(timeout time.Duration) *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: protocol.CookieKey, MagicCookieValue: protocol.CookieValue, ProtocolVersion: protocol.Version},
		VersionedPlugins: map[int]plugin.PluginSet{protocol.Version: {protocol.PluginName: half{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: p.sockets},
		StartTimeout:     timeout,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off}),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			p.process.cmd.Env = append(p.process.cmd.Env, cmd.Env...)
			return p.process, nil
		},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessage), grpc.MaxCallSendMsgSize(protocol.MaxMessage)),
		},
	}
}

// half is the manager's half of go-plugin's pair; the SDK has the other.
type half struct{ plugin.NetRPCUnsupportedPlugin }

var _ plugin.GRPCPlugin = half{}

// GRPCServer is the worker's half and never called here.
func (half) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("a manager serves no worker")
}

// GRPCClient returns the client of the worker service.
func (half) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return workerv1.NewWorkerServiceClient(conn), nil
}

func (p *Process) connect() error {
	conn, err := p.client.Client()
	if err != nil {
		return err
	}
	dispensed, err := conn.Dispense(protocol.PluginName)
	if err != nil {
		return err
	}
	service, ok := dispensed.(workerv1.WorkerServiceClient)
	if !ok {
		return fmt.Errorf("unexpected client %T", dispensed)
	}
	p.service = service
	return nil
}

// explain puts an error of go-plugin in words that help. The process has been collected.
func (p *Process) explain(err error, timeout time.Duration) error {
	text, wrote := err.Error(), "it wrote nothing"
	if out := p.Output(); out != "" {
		wrote = "it wrote: " + strings.ReplaceAll(out, "\n", " | ")
	}
	switch {
	case p.process.cmd.Process == nil:
		return err
	case strings.HasPrefix(text, "Unrecognized remote plugin message: ") && !strings.Contains(text, "Failed to read any lines"):
		return fmt.Errorf("the first line on its standard output is not the handshake: is it a worker program, and does it print nothing before? %s", wrote)
	case strings.HasPrefix(text, "Unrecognized remote plugin message"), strings.HasPrefix(text, "plugin exited"):
		code, _ := p.Exit()
		if code < 0 {
			return fmt.Errorf("it closed its standard output before it was ready, or was killed; %s", wrote)
		}
		return fmt.Errorf("it ended with exit code %d before it was ready; %s", code, wrote)
	case strings.HasPrefix(text, "timeout while waiting"):
		return fmt.Errorf("it was not ready within %s; %s", timeout, wrote)
	}
	return fmt.Errorf("%s; %s", strings.ReplaceAll(text, "\n", " "), wrote)
}

// Service is the worker's own.
func (p *Process) Service() workerv1.WorkerServiceClient { return p.service }

// Exited is closed when the process has been collected.
func (p *Process) Exited() <-chan struct{} { return p.process.exited }

// Exit waits for the process's end and returns its exit code, or -1 and an error that names the signal that ended it.
func (p *Process) Exit() (code int, err error) {
	<-p.process.exited
	state := p.process.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -1, fmt.Errorf("it was ended by signal %d (%s)", status.Signal(), status.Signal())
	}
	return state.ExitCode(), nil
}

// PID is the number of the process.
func (p *Process) PID() int { return p.process.cmd.Process.Pid }

// Output is the first and the latest of what it wrote on its standard streams.
func (p *Process) Output() string { return p.process.out.text() }

// Written is the number of bytes that it wrote on its standard streams, without the handshake.
func (p *Process) Written() int64 { return p.process.out.written() }

// Terminate sends SIGTERM to the process, not to its group.
func (p *Process) Terminate() error { return p.process.cmd.Process.Signal(syscall.SIGTERM) }

// CutLifeline does what a manager's death does to the lifeline.
func (p *Process) CutLifeline() { p.process.cut() }

// LeavesBehind reports whether a process of its group is alive.
func (p *Process) LeavesBehind() bool {
	return !errors.Is(syscall.Kill(-p.PID(), 0), syscall.ESRCH)
}

// Close kills the process, if it has not ended, waits for it, and frees what it leaves here.
func (p *Process) Close() {
	p.process.signalGroup(syscall.SIGKILL)
	if p.process.cmd.Process != nil {
		<-p.process.exited
		if p.LeavesBehind() { // its number belongs to the group as long as that has members
			_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // an error says that they have ended
		}
		p.process.pumps.Wait()
	}
	p.client.Kill() // dead by now: go-plugin's own has no deadline (grpc_client.go:107)
	p.process.cut()
	_ = p.process.writer.CloseWithError(io.EOF) // never fails
	_ = p.process.stdout.Close()                // never fails
	_ = os.RemoveAll(p.sockets)
}
