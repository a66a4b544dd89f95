package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// process is a worker program started by go-plugin's own client, with the test in the manager's place.
type process struct {
	t      testing.TB
	client *plugin.Client
	cmd    *exec.Cmd
	worker workerv1.WorkerServiceClient
	stderr *output
}

// output collects what the program prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Len()
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// remote is the manager's half of the plugin.
type remote struct{ plugin.NetRPCUnsupportedPlugin }

func (remote) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the manager serves no worker")
}

func (remote) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return workerv1.NewWorkerServiceClient(conn), nil
}

// launch starts a program and does the handshake.
func launch(t testing.TB, folder string, prepare ...func(*exec.Cmd)) *process {
	t.Helper()
	program := testenv.BuildBinaries(t, folder)[0]
	p := &process{t: t, cmd: exec.Command(program), stderr: &output{}} //nolint:gosec // a program of ours
	p.cmd.Env = []string{plugin.EnvUnixSocketDir + "=" + testenv.ShortDir(t)}
	for _, f := range prepare {
		f(p.cmd)
	}
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: protocol.CookieKey, MagicCookieValue: protocol.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocol.Version: {protocol.PluginName: remote{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              p.cmd, SkipHostEnv: true, Stderr: p.stderr, Logger: hclog.NewNullLogger(), StartTimeout: 20 * time.Second,
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessage))},
	})
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // go-plugin's Kill waits for a program that does not answer
		p.client.Kill()
	})
	connection, err := p.client.Client()
	if err != nil {
		t.Fatalf("start %s: %v\n%s", folder, err, p.stderr)
	}
	raw, err := connection.Dispense(protocol.PluginName)
	if err != nil {
		t.Fatalf("dispense the worker: %v", err)
	}
	p.worker = raw.(workerv1.WorkerServiceClient)
	return p
}

// open configures the worker and opens its stream.
func (p *process) open(slots uint32) workerv1.WorkerService_WorkClient {
	p.t.Helper()
	if _, err := p.worker.Configure(p.t.Context(), &workerv1.ConfigureRequest{Queue: "q", Slots: slots, Manager: "test"}); err != nil {
		p.t.Fatalf("configure: %v", err)
	}
	stream, err := p.worker.Work(p.t.Context())
	if err != nil {
		p.t.Fatalf("open the stream: %v", err)
	}
	return stream
}

// exit waits for the end of the process and returns its exit code.
func (p *process) exit() int {
	p.t.Helper()
	poll(p.t, "the end of the process", p.client.Exited)
	return p.cmd.ProcessState.ExitCode()
}

// poll waits for something to become true.
func poll(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick, late := time.NewTicker(2*time.Millisecond), time.NewTimer(20*time.Second)
	defer tick.Stop()
	defer late.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func send(t testing.TB, stream workerv1.WorkerService_WorkClient, run uint64, payload string) {
	t.Helper()
	if err := stream.Send(&workerv1.WorkRequest{Instructions: []*workerv1.Instruction{
		{Kind: &workerv1.Instruction_Task{Task: &workerv1.Task{Run: run, Id: "q:k", Payload: []byte(payload), Attempt: 1}}},
	}}); err != nil {
		t.Fatalf("send a task: %v", err)
	}
}

// outcomes reads until n outcomes are here.
func outcomes(t testing.TB, stream workerv1.WorkerService_WorkClient, n int) map[uint64]*workerv1.Outcome {
	t.Helper()
	all := map[uint64]*workerv1.Outcome{}
	for len(all) < n {
		response, err := stream.Recv()
		if err != nil {
			t.Fatalf("read reports, with %d of %d outcomes: %v", len(all), n, err)
		}
		for _, report := range response.GetReports() {
			if o := report.GetOutcome(); o != nil {
				all[o.GetRun()] = o
			}
		}
	}
	return all
}
