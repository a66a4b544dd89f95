package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
	sockets  string // the directory of its socket

	mu          sync.Mutex
	connections []*grpc.ClientConn
}

// Describe starts the program, asks what it is, and ends it.
func (l *Launcher) Describe(ctx context.Context, spec Spec) (*workerv1.Manifest, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, spec.StartTimeout, errStartTimeout)
	defer cancel()
	s, err := l.shakeHands(ctx, spec)
	if err != nil {
		return nil, err
	}
	s.end()
	return s.manifest, nil
}

// Start brings a process up and opens its Work stream. On an error nothing is left of it; the error holds the first and the
// last lines that it wrote. When ctx ends first, the start is given up and the error wraps the cause.
func (l *Launcher) Start(ctx context.Context, spec Spec, sink Sink) (*Process, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, spec.StartTimeout, errStartTimeout)
	defer cancel()
	s, err := l.shakeHands(ctx, spec)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, s.run.killGroup)
	defer stop()
	calling, release := s.run.whileAlive(ctx)
	defer release()
	slots := max(1, spec.Slots)
	_, err = s.service.Configure(calling, &workerv1.ConfigureRequest{
		Queue: spec.Queue, Options: spec.Options, Slots: uint32(slots), Manager: spec.Manager, //nolint:gosec // bounded by the settings
	})
	if err != nil {
		s.end()
		return nil, s.failure(ctx, spec, unconfigured(err), err)
	}
	p := newProcess(l.lastID.Add(1), slots, cmp.Or(spec.KillGrace, leaveGrace), s, sink, l.log)
	if err := p.open(); err != nil || !stop() {
		p.close()
		s.end()
		return nil, s.failure(ctx, spec, "opened no work stream", err)
	}
	l.log.Debug("worker started", "queue", spec.Queue, "worker", p.ID(), "pid", p.PID(), "took", time.Since(began))
	go p.write()
	go p.read()
	go p.follow()
	return p, nil
}

// shakeHands starts the program and asks it what it is. The end of ctx kills it, since go-plugin's start has no context.
func (l *Launcher) shakeHands(ctx context.Context, spec Spec) (*started, error) {
	if len(spec.Command) == 0 {
		return nil, fmt.Errorf("plugin %s has no command: give it one in the configuration", spec.Plugin)
	}
	s := &started{out: &output{}}
	s.run = newRunner(l, spec, s.out)
	if s.run.cmd.Err != nil {
		return nil, fmt.Errorf("plugin %s cannot be started: %w", spec.Plugin, s.run.cmd.Err)
	}
	var err error
	if s.run.wanted, err = lookUp(spec.User); err != nil {
		return nil, fmt.Errorf("plugin %s cannot be started: %w", spec.Plugin, err)
	}
	s.client = s.newClient(l.socketDir, spec.StartTimeout)
	stop := context.AfterFunc(ctx, s.run.killGroup)
	defer stop()
	if err := s.connect(ctx); err != nil {
		s.end()
		return nil, s.failure(ctx, spec, "did not start", err)
	}
	if err := checkManifest(s.manifest); err != nil {
		s.end()
		return nil, s.failure(ctx, spec, "describes itself wrongly", err)
	}
	return s, nil
}

func (s *started) newClient(socketDir string, timeout time.Duration) *plugin.Client {
	return plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{MagicCookieKey: protocol.CookieKey, MagicCookieValue: protocol.CookieValue, ProtocolVersion: protocol.Version},
		VersionedPlugins: map[int]plugin.PluginSet{
			protocol.Version: {protocol.PluginName: connection{}},
		},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: socketDir},
		StartTimeout:     timeout,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off}),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, sockets string) (runner.Runner, error) {
			s.sockets = sockets
			s.run.adopt(cmd.Env, sockets)
			return s.run, nil
		},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessage), grpc.MaxCallSendMsgSize(protocol.MaxMessage)),
			grpc.WithChainStreamInterceptor(s.remember),
		},
	})
}

// remember keeps a connection for end: go-plugin forgets the ones on which its first stream failed, open as they are.
func (s *started) remember(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, stream grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	s.mu.Lock()
	if !slices.Contains(s.connections, conn) {
		s.connections = append(s.connections, conn)
	}
	s.mu.Unlock()
	return stream(ctx, desc, conn, method, options...)
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
	ctx, release := s.run.whileAlive(ctx)
	defer release()
	described, err := service.Describe(ctx, &workerv1.DescribeRequest{}, grpc.WaitForReady(true))
	switch {
	case status.Code(err) == codes.DeadlineExceeded:
		return fmt.Errorf("it did not say what it is within %s", describeTimeout)
	case err != nil:
		return err
	}
	s.service, s.manifest = service, described.GetManifest()
	return nil
}

// end kills the process, if it was started, waits for it and cleans up.
func (s *started) end() {
	s.run.killGroup()
	if s.run.cmd.Process != nil {
		<-s.run.done
	}
	s.discard()
}

// discard frees what a collected process leaves here. go-plugin's own Kill asks the process to shut down without a deadline
// (grpc_client.go:107), so it must be dead by now; and it does nothing about a process that could not be forked.
func (s *started) discard() {
	s.client.Kill()
	s.mu.Lock()
	connections := s.connections
	s.mu.Unlock()
	for _, conn := range connections {
		_ = conn.Close() // an error says that it is closed
	}
	_ = s.run.stdoutW.CloseWithError(io.EOF)
	_ = s.run.stdout.Close()
	if s.sockets != "" {
		_ = os.RemoveAll(s.sockets)
	}
	s.run.discard.Do(func() { close(s.run.discarded) })
}

func checkManifest(m *workerv1.Manifest) error {
	if err := task.CheckName(m.GetName()); err != nil {
		return fmt.Errorf("its name: %w", err)
	}
	return nil
}
