package conform_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drover-jobs/drover/protocol"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// flawVariable makes this test binary a worker, written without the SDK, with one flaw.
const flawVariable = "CONFORM_TEST_FLAW"

// The flaws of the worker.
const (
	noFlaw          = "none"
	chatty          = "chatty"           // prints before the handshake
	needy           = "needy"            // needs HOME
	nameless        = "nameless"         // has no version, an unknown limit, and a bad description
	speechless      = "speechless"       // ends on an unknown option
	unfinished      = "unfinished"       // gives tasks no outcome
	twofold         = "twofold"          // gives tasks two outcomes
	notJSON         = "not-json"         // has results that are no JSON
	trusting        = "trusting"         // accepts any payload
	fragile         = "fragile"          // dies of a payload against its schema
	greedy          = "greedy"           // runs tasks of any kind
	overdone        = "overdone"         // reports progress past the total
	stubborn        = "stubborn"         // ignores a cancel
	oneAtATime      = "one-at-a-time"    // runs one task whatever its slots say
	silentPanic     = "silent-panic"     // dies without a word about the task
	clinging        = "clinging"         // does not end after a drain
	failing         = "failing"          // ends with exit code 3 after a drain
	handsBack       = "hands-back"       // hands back what runs when it drains
	deaf            = "deaf"             // ignores SIGTERM
	orphan          = "orphan"           // ignores the lifeline
	leavesAChild    = "leaves-a-child"   // starts a child that outlives it
	exitsOnAnything = "exits-on-unknown" // ends on an instruction that it does not know
)

// flawed is the main function of the worker.
func flawed(flaw string) int {
	if flaw == needy && os.Getenv("HOME") == "" {
		_, _ = fmt.Fprintln(os.Stderr, "HOME is not set")
		return 1
	}
	if flaw == chatty {
		_, _ = fmt.Fprintln(os.Stdout, "hello world")
	}
	w := &worker{flaw: flaw, slots: make(chan struct{}, 2), cancels: map[uint64]context.CancelFunc{}}
	if flaw == oneAtATime {
		w.slots = make(chan struct{}, 1)
	}
	if flaw == leavesAChild {
		child := exec.Command("sleep", "60") // it holds the lifeline, and this process does not watch for it
		child.ExtraFiles = nil
		_ = child.Start()
	}
	if flaw != orphan {
		go func() {
			_, _ = io.Copy(io.Discard, os.NewFile(3, "lifeline"))
			os.Exit(1)
		}()
	}
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	go func() {
		for range terms {
			if flaw != deaf {
				os.Exit(0)
			}
		}
	}()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: protocol.CookieKey, MagicCookieValue: protocol.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocol.Version: {protocol.PluginName: glue{worker: w}}},
		Logger:           hclog.NewNullLogger(),
		GRPCServer:       plugin.DefaultGRPCServer,
	})
	return 0
}

type glue struct {
	plugin.NetRPCUnsupportedPlugin
	worker *worker
}

func (g glue) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	workerv1.RegisterWorkerServiceServer(server, g.worker)
	return nil
}

func (glue) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not here")
}

// worker is a worker with a flaw. Its tasks take "ms" milliseconds and may ask for a panic.
type worker struct {
	workerv1.UnimplementedWorkerServiceServer
	flaw    string
	slots   chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	stream  workerv1.WorkerService_WorkServer
	cancels map[uint64]context.CancelFunc
}

func (w *worker) Describe(context.Context, *workerv1.DescribeRequest) (*workerv1.DescribeResponse, error) {
	m := &workerv1.Manifest{
		Name: "flawed", Version: "1", Description: "has a flaw", Slots: 2,
		PayloadSchema: `{"type":"object","properties":{"ms":{"type":"integer"},"panic":{"type":"boolean"}},"required":["ms"]}`,
		DefaultLimits: map[string]string{"kill_grace": "1s"},
	}
	if w.flaw == nameless {
		m.Version, m.Description = "", "two\nlines"
		m.DefaultLimits["max_wokers"] = "7"
	}
	return &workerv1.DescribeResponse{Manifest: m}, nil
}

func (w *worker) Configure(_ context.Context, request *workerv1.ConfigureRequest) (*workerv1.ConfigureResponse, error) {
	if bytes.Contains(request.GetOptions(), []byte("unknown")) {
		if w.flaw == speechless {
			os.Exit(1)
		}
		return nil, status.Error(codes.InvalidArgument, "no such option")
	}
	return &workerv1.ConfigureResponse{}, nil
}

func (w *worker) Work(stream workerv1.WorkerService_WorkServer) error {
	w.stream = stream
	for {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, instruction := range request.GetInstructions() {
			switch kind := instruction.GetKind().(type) {
			case *workerv1.Instruction_Task:
				w.begin(kind.Task)
			case *workerv1.Instruction_Cancel:
				w.mu.Lock()
				if cancel := w.cancels[kind.Cancel.GetRun()]; cancel != nil && w.flaw != stubborn {
					cancel()
				}
				w.mu.Unlock()
			case *workerv1.Instruction_Drain:
				w.drain()
			default:
				if w.flaw == exitsOnAnything {
					os.Exit(1)
				}
			}
		}
	}
}

func (w *worker) drain() {
	if w.flaw == handsBack {
		w.mu.Lock()
		for run := range w.cancels {
			w.sendLocked(fault(run, taskv1.FaultKind_FAULT_KIND_INTERRUPTED, "draining"))
		}
		clear(w.cancels)
		w.mu.Unlock()
	}
	go func() {
		w.running.Wait()
		code := 0
		switch w.flaw {
		case clinging:
			return
		case failing:
			code = 3
		}
		time.AfterFunc(50*time.Millisecond, func() { os.Exit(code) }) // the last outcome has to leave
	}()
}

func (w *worker) begin(t *workerv1.Task) {
	var in struct {
		MS    int  `json:"ms"`
		Panic bool `json:"panic"`
	}
	err := json.Unmarshal(t.GetPayload(), &in)
	unfit := err != nil || !strings.HasPrefix(string(t.GetPayload()), "{")
	switch {
	case t.GetKind() != "flawed" && w.flaw != greedy:
		w.send(fault(t.GetRun(), taskv1.FaultKind_FAULT_KIND_UNKNOWN_KIND, "not mine"))
		return
	case unfit && w.flaw == fragile && strings.HasPrefix(string(t.GetPayload()), "{\""):
		os.Exit(1)
	case unfit && w.flaw != trusting:
		w.send(fault(t.GetRun(), taskv1.FaultKind_FAULT_KIND_INVALID_PAYLOAD, "it does not fit"))
		return
	case in.Panic && w.flaw == silentPanic:
		os.Exit(2)
	case in.Panic:
		w.send(fault(t.GetRun(), taskv1.FaultKind_FAULT_KIND_PANIC, "oh no"))
		time.AfterFunc(50*time.Millisecond, func() { os.Exit(2) })
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.mu.Lock()
	w.cancels[t.GetRun()] = cancel
	w.mu.Unlock()
	w.running.Go(func() { w.perform(ctx, t.GetRun(), time.Duration(in.MS)*time.Millisecond) })
}

func (w *worker) perform(ctx context.Context, run uint64, pause time.Duration) {
	w.slots <- struct{}{}
	defer func() { <-w.slots }()
	w.send(&workerv1.Report{Kind: &workerv1.Report_Accepted{Accepted: &workerv1.Accepted{Run: run}}})
	progress := &taskv1.Progress{Done: 1, Total: 2}
	if w.flaw == overdone {
		progress.Done = 3
	}
	w.send(&workerv1.Report{Kind: &workerv1.Report_Progress{Progress: &workerv1.Progress{Run: run, Progress: progress}}})
	if w.flaw == unfinished {
		return
	}
	report := result(run, `{"ok":true}`)
	if w.flaw == notJSON {
		report = result(run, `{ok}`)
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		report = fault(run, taskv1.FaultKind_FAULT_KIND_CANCELLED, "cancelled")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancels[run] == nil {
		return
	}
	delete(w.cancels, run)
	w.sendLocked(report)
	if w.flaw == twofold {
		w.sendLocked(report)
	}
}

func (w *worker) send(report *workerv1.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sendLocked(report)
}

func (w *worker) sendLocked(report *workerv1.Report) {
	_ = w.stream.Send(&workerv1.WorkResponse{Reports: []*workerv1.Report{report}})
}

func fault(run uint64, kind taskv1.FaultKind, message string) *workerv1.Report {
	return &workerv1.Report{Kind: &workerv1.Report_Outcome{Outcome: &workerv1.Outcome{
		Run: run, End: &workerv1.Outcome_Fault{Fault: &taskv1.Fault{Kind: kind, Message: message, Permanent: true}},
	}}}
}

func result(run uint64, text string) *workerv1.Report {
	return &workerv1.Report{Kind: &workerv1.Report_Outcome{Outcome: &workerv1.Outcome{
		Run: run, End: &workerv1.Outcome_Result{Result: []byte(text)},
	}}}
}
