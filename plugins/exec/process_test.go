package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
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

// process is the program exec, started by go-plugin's own client, with the test in the manager's place.
type process struct {
	t      *testing.T
	client *plugin.Client
	cmd    *exec.Cmd
	worker workerv1.WorkerServiceClient
	stream workerv1.WorkerService_WorkClient
	stderr *output
}

// output collects what the program writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
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

// launch starts exec with the environment that a manager gives, configures it and opens its stream.
func launch(t *testing.T, options string, arguments ...string) *process {
	t.Helper()
	program := testenv.BuildBinaries(t, "plugins/exec")[0]
	p := &process{t: t, cmd: exec.Command(program, arguments...), stderr: &output{}}
	p.cmd.Dir = testenv.ModuleRoot(t)
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: protocol.CookieKey, MagicCookieValue: protocol.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocol.Version: {protocol.PluginName: remote{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              p.cmd, SkipHostEnv: true, UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: testenv.ShortDir(t)},
		Stderr: p.stderr, Logger: hclog.NewNullLogger(), StartTimeout: patience,
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessage))},
	})
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // go-plugin's Kill waits for a program that does not answer
		p.client.Kill()
	})
	connection, err := p.client.Client()
	if err != nil {
		t.Fatalf("start exec: %v\n%s", err, p.stderr)
	}
	raw, err := connection.Dispense(protocol.PluginName)
	if err != nil {
		t.Fatalf("dispense the worker: %v", err)
	}
	p.worker = raw.(workerv1.WorkerServiceClient)
	if _, err := p.worker.Configure(t.Context(), &workerv1.ConfigureRequest{Queue: "q", Slots: 1, Options: []byte(options)}); err != nil {
		t.Fatalf("configure: %v\n%s", err, p.stderr)
	}
	if p.stream, err = p.worker.Work(t.Context()); err != nil {
		t.Fatalf("open the stream: %v", err)
	}
	return p
}

// patience bounds what a test waits for.
const patience = 30 * time.Second

func (p *process) send(instruction *workerv1.Instruction) {
	p.t.Helper()
	if err := p.stream.Send(&workerv1.WorkRequest{Instructions: []*workerv1.Instruction{instruction}}); err != nil {
		p.t.Fatalf("send an instruction: %v", err)
	}
}

func (p *process) begin(number uint64, payload string) {
	p.t.Helper()
	p.send(&workerv1.Instruction{Kind: &workerv1.Instruction_Task{Task: &workerv1.Task{
		Run: number, Id: "q:k", Payload: []byte(payload), Attempt: 1, DeadlineMs: time.Now().Add(patience).UnixMilli(),
	}}})
}

// run runs one task and returns its outcome and how many progress reports came before it; the first one is answered with a
// Cancel when that is asked for.
func (p *process) run(number uint64, payload string, cancel bool) (*workerv1.Outcome, int) {
	p.t.Helper()
	p.begin(number, payload)
	progress := 0
	for {
		response, err := p.stream.Recv()
		if err != nil {
			p.t.Fatalf("read reports: %v\n%s", err, p.stderr)
		}
		for _, report := range response.GetReports() {
			if report.GetProgress() != nil {
				progress++
			}
			if cancel && progress == 1 {
				p.send(&workerv1.Instruction{Kind: &workerv1.Instruction_Cancel{Cancel: &workerv1.Cancel{Run: number, Reason: "cancelled"}}})
			}
			if o := report.GetOutcome(); o != nil {
				return o, progress
			}
		}
	}
}

// drain ends the worker and checks that it ends well.
func (p *process) drain() {
	p.t.Helper()
	p.send(&workerv1.Instruction{Kind: &workerv1.Instruction_Drain{Drain: &workerv1.Drain{}}})
	tick, late := time.NewTicker(5*time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer late.Stop()
	for !p.client.Exited() {
		select {
		case <-tick.C:
		case <-late.C:
			p.t.Fatal("the worker does not end after its drain")
		}
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("the worker ended with exit code %d\n%s", code, p.stderr)
	}
}

// needs fails the test with what to do when an interpreter is missing.
func needs(t *testing.T, program, pack string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%s is not installed: run `make test`, which installs what the tests need, or install the package %s", program, pack)
	}
}

// Started by hand the program explains itself; a wrong command line is named; a manifest can be asked for.
func TestByHand(t *testing.T) {
	t.Parallel()
	program := testenv.BuildBinaries(t, "plugins/exec")[0]
	for _, test := range []struct {
		arguments []string
		code      int
		want      string
	}{
		{nil, 2, "--name is missing"},
		{[]string{"--help"}, 0, "exec --name KIND"},
		{[]string{"--name", "thumbs", "--", "php", "worker.php"}, 1, "A manager starts it"},
		{[]string{"--name", "thumbs", "--slots", "2", "--describe", "--", "php", "worker.php"}, 0, `"name": "thumbs"`},
		{[]string{"--name", "No Name", "--describe", "--", "php"}, 1, "is not a name"},
	} {
		cmd := exec.Command(program, test.arguments...)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(string(out), test.want) {
			t.Errorf("%q: exit code %d, %v, want %d and %q:\n%s", test.arguments, code, err, test.code, test.want, out)
		}
	}
}

// The examples that serve many tasks do so through the real program: results, progress, an error for good, a cancelled
// task, and the end.
func TestPersistentExamples(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, program, pack, file string
	}{
		{"php", "php", "php-cli", "php/worker.php"},
		{"python", "python3", "python3", "python/worker.py"},
		{"node", "node", "nodejs", "node/worker.mjs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			needs(t, test.program, test.pack)
			p := launch(t, `{"start_timeout": "30s"}`, "--name", "words", "--", test.program, "plugins/exec/examples/"+test.file)
			for run := range uint64(3) {
				o, progress := p.run(run+1, `{"text": "two wörds\n"}`, false)
				if got := string(o.GetResult()); got != `{"words":2,"characters":10}` || progress != 1 {
					t.Errorf("run %d: %s, %v, %d progress reports", run+1, got, o.GetFault(), progress)
				}
			}
			o, _ := p.run(4, `{"text": 7}`, false)
			if f := o.GetFault(); f.GetMessage() != "text is missing" || !f.GetPermanent() {
				t.Errorf("a wrong payload: %v", o)
			}
			if test.name == "node" {
				o, _ = p.run(5, `{"text": "a", "ms": 60000}`, true)
				if f := o.GetFault(); !strings.Contains(f.GetMessage(), "AbortError") {
					t.Errorf("a cancelled task: %v", o)
				}
				o, _ = p.run(6, `{"text": "a"}`, false)
				if got := string(o.GetResult()); got != `{"words":1,"characters":1}` {
					t.Errorf("after a cancelled task: %v", o)
				}
			}
			p.drain()
		})
	}
}

// The example for once mode works through the real program, and what it writes for people reaches the worker's standard
// error.
func TestOnceExample(t *testing.T) {
	t.Parallel()
	p := launch(t, `{}`, "--name", "digest", "--once", "--", "sh", "plugins/exec/examples/sh/worker.sh")
	o, _ := p.run(1, `{"a":1}`, false)
	if got, want := string(o.GetResult()), fmt.Sprintf(`{"sha256":%q,"bytes":7}`, "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"); got != want {
		t.Errorf("got %s, %v, want %s", got, o.GetFault(), want)
	}
	o, _ = p.run(2, `{}`, false)
	if f := o.GetFault(); !f.GetPermanent() || !strings.Contains(f.GetMessage(), "exit code 65 (the payload is wrong): the payload is empty") {
		t.Errorf("an empty payload: %v", o)
	}
	p.drain()
	if !strings.Contains(p.stderr.String(), "run 1 of q:k\n") {
		t.Errorf("the worker's standard error: %q", p.stderr)
	}
}
