package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

// describeTimeout bounds Describe, which touches nothing.
const describeTimeout = 5 * time.Second

// connection is the manager's half of go-plugin's pair; the SDK has the other.
type connection struct {
	plugin.NetRPCUnsupportedPlugin
}

var _ plugin.GRPCPlugin = connection{}

// GRPCServer is the plugin's half and never called here.
func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("a manager serves no worker")
}

// GRPCClient returns the client of the worker service.
func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return workerv1.NewWorkerServiceClient(conn), nil
}

// started is a process that has shaken hands.
type started struct {
	client   *plugin.Client
	run      *processRunner
	service  workerv1.WorkerServiceClient
	manifest *workerv1.Manifest
	out      *output
}

// Describe starts the program, asks what it is, and ends it.
func (l *Launcher) Describe(ctx context.Context, spec Spec) (*workerv1.Manifest, error) {
	s, err := l.shakeHands(ctx, spec)
	if err != nil {
		return nil, err
	}
	s.end()
	return s.manifest, nil
}

// Start brings a process up and opens its Work stream. On an error nothing is left of it; the error holds the first
// lines that it wrote. When ctx ends first, the start is given up.
func (l *Launcher) Start(ctx context.Context, spec Spec, sink Sink) (*Process, error) {
	began := time.Now()
	s, err := l.shakeHands(ctx, spec)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, spec.StartTimeout)
	defer cancel()
	_, err = s.service.Configure(ctx, &workerv1.ConfigureRequest{
		Queue: spec.Queue, Options: spec.Options, Slots: uint32(max(1, spec.Slots)), Manager: spec.Manager, //nolint:gosec // bounded by the settings
	})
	if err != nil {
		s.end()
		return nil, s.failure(spec, "refused its configuration", err)
	}
	p := newProcess(l.lastID.Add(1), s, sink, l.log)
	if err := p.open(); err != nil {
		s.end()
		return nil, s.failure(spec, "opened no work stream", err)
	}
	l.log.Debug("worker started", "queue", spec.Queue, "worker", p.ID(), "pid", p.PID(), "took", time.Since(began))
	go p.write()
	go p.read()
	go p.follow()
	return p, nil
}

// shakeHands starts the program and asks it what it is.
func (l *Launcher) shakeHands(ctx context.Context, spec Spec) (*started, error) {
	if len(spec.Command) == 0 {
		return nil, fmt.Errorf("plugin %s has no command", spec.Plugin)
	}
	s := &started{out: &output{}}
	s.run = newRunner(l, spec, s.out)
	if s.run.cmd.Err != nil {
		return nil, fmt.Errorf("plugin %s cannot be started: %w", spec.Plugin, s.run.cmd.Err)
	}
	s.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{MagicCookieKey: protocol.CookieKey, MagicCookieValue: protocol.CookieValue, ProtocolVersion: protocol.Version},
		VersionedPlugins: map[int]plugin.PluginSet{
			protocol.Version: {protocol.PluginName: connection{}},
		},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: l.socketDir},
		StartTimeout:     spec.StartTimeout,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off}),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			s.run.adopt(cmd.Env)
			return s.run, nil
		},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessage), grpc.MaxCallSendMsgSize(protocol.MaxMessage)),
		},
	})
	// go-plugin's start has no context; killing the process ends it.
	stop := context.AfterFunc(ctx, s.run.killGroup)
	defer stop()
	err := s.connect(ctx)
	if err != nil {
		s.end()
		return nil, s.failure(spec, "did not start", err)
	}
	if err := checkManifest(s.manifest); err != nil {
		s.end()
		return nil, s.failure(spec, "describes itself wrongly", err)
	}
	return s, nil
}

func (s *started) connect(ctx context.Context) error {
	conn, err := s.client.Client()
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
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	described, err := service.Describe(ctx, &workerv1.DescribeRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	s.service, s.manifest = service, described.GetManifest()
	return nil
}

// end kills the process, waits for it and cleans up after go-plugin. The group is killed first, because go-plugin's Kill
// asks the process to shut down without a deadline (grpc_client.go:107).
func (s *started) end() {
	s.run.killGroup()
	if s.run.cmd.Process != nil {
		<-s.run.done
	}
	s.client.Kill()
	_ = s.run.stdoutW.CloseWithError(io.EOF)
	_ = s.run.stdout.Close()
}

// failure says what a start failed at, why, and what the process wrote.
func (s *started) failure(spec Spec, what string, err error) error {
	text := err.Error()
	if st, ok := status.FromError(err); ok {
		text = st.Message()
	}
	if lines := s.out.Tail(diagnosedLines); len(lines) > 0 && !strings.Contains(text, lines[0]) {
		text += "; it wrote: " + strings.Join(lines, " | ")
	}
	return fmt.Errorf("plugin %s (%s) %s: %s", spec.Plugin, spec.Command[0], what, text)
}

func checkManifest(m *workerv1.Manifest) error {
	if err := task.CheckName(m.GetName()); err != nil {
		return fmt.Errorf("its name: %w", err)
	}
	return nil
}

// exitOf describes the end of a collected process.
func (s *started) exitOf(reason job.ExitReason, worker uint64, age time.Duration) job.Exit {
	exit := job.Exit{Reason: reason, Worker: worker, PID: s.run.cmd.Process.Pid, Age: age, Code: -1, Tail: s.out.Tail(diagnosedLines)}
	if ws, ok := s.run.state.Sys().(interface {
		Signaled() bool
	}); ok && !ws.Signaled() {
		exit.Code = s.run.state.ExitCode()
	} else {
		exit.Signal = signalOf(s.run.state)
	}
	return exit
}
