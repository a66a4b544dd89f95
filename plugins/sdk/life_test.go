package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// gated is a worker whose tasks wait for their name on a gate.
func gated(release <-chan struct{}) *sdk.Program {
	return program(func(ctx context.Context, in input) (string, error) {
		switch in.Name {
		case "panic":
			panic("at the disco")
		case "goexit":
			runtime.Goexit()
		case "deaf":
			<-release
		default:
			select {
			case <-release:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return in.Name, nil
	})
}

func exitCode(t *testing.T, worker *sdktest.Worker) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sdktest.Patience)
	defer cancel()
	code, err := worker.Exit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// A panic is reported with its stack and costs the process: what runs finishes, what comes is handed back, the exit code is 2.
func TestPanicCostsTheProcess(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"panic", "goexit"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			worker := sdktest.Start(t, gated(release), sdktest.AnyExit(), sdktest.Slots(2))
			other := worker.Begin(`{"name":"other"}`)
			<-other.Begun()
			f := asFault(t, second(worker.Run(t.Context(), input{Name: how})))
			if f.Kind != fault.Panic || !strings.Contains(f.Detail, "life_test.go") {
				t.Errorf("got %v with detail\n%s", f, f.Detail)
			}
			if how == "panic" && (!strings.Contains(f.Message, "at the disco") || !strings.HasPrefix(f.Detail, "panic(")) {
				t.Errorf("got %v with detail\n%s", f, f.Detail)
			}
			if f := asFault(t, second(worker.Run(t.Context(), `{}`))); f.Kind != fault.Interrupted {
				t.Errorf("a task after the panic: %v", f)
			}
			close(release)
			if result, err := other.Wait(); err != nil || string(result) != `"other"` {
				t.Errorf("the other task: %s, %v", result, err)
			}
			if code := exitCode(t, worker); code != 2 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// After a panic, tasks that take too long are cancelled, and those that do not listen are handed back before the process exits.
func TestPanicDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		worker := sdktest.Start(t, gated(release), sdktest.AnyExit())
		long, deaf := worker.Begin(`{"name":"long"}`), worker.Begin(`{"name":"deaf"}`)
		<-long.Begun()
		<-deaf.Begun()
		begun := time.Now()
		if f := asFault(t, second(worker.Run(t.Context(), `{"name":"panic"}`))); f.Kind != fault.Panic {
			t.Errorf("got %v", f)
		}
		for name, run := range map[string]*sdktest.Run{"long": long, "deaf": deaf} {
			if f := asFault(t, second(run.Wait())); f.Kind != fault.Interrupted {
				t.Errorf("%s: got %v", name, f)
			}
		}
		if code := exitCode(t, worker); code != 2 {
			t.Errorf("exit code %d", code)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		close(release) // in a process the exit ends the deaf one
	})
}

// A drain finishes what runs, hands back what waits or comes later, closes the worker after the last task, and exits with 0.
func TestDrain(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var ended, closed atomic.Int32
	worker := sdktest.Start(t, sdk.New(sdk.Worker{Name: "t", Close: func() error {
		closed.Store(ended.Load() + 1)
		return nil
	}}, func(context.Context, input) (int32, error) {
		<-release
		return ended.Add(1), nil
	}))
	running, waiting := worker.Begin(`{}`), worker.Begin(`{}`)
	<-running.Begun()
	worker.Drain()
	if f := asFault(t, second(waiting.Wait())); f.Kind != fault.Interrupted {
		t.Errorf("the task that waited: %v", f)
	}
	if f := asFault(t, second(worker.Run(t.Context(), `{}`))); f.Kind != fault.Interrupted {
		t.Errorf("the task that came later: %v", f)
	}
	close(release)
	if result, err := running.Wait(); err != nil || string(result) != "1" {
		t.Errorf("the task that ran: %s, %v", result, err)
	}
	if code := exitCode(t, worker); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if closed.Load() != 2 {
		t.Error("Close was not called after the last task")
	}
}

// A process whose stream breaks cancels what runs and exits with an error.
func TestLostStream(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, gated(nil), sdktest.AnyExit())
	run := worker.Begin(`{"name":"x"}`)
	<-run.Begun()
	worker.HangUp()
	if code := exitCode(t, worker); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if _, err := run.Wait(); err == nil {
		t.Error("a result came over a broken stream")
	}
}

// A handler never meets more tasks at once than the queue has slots, whatever the manager sends; what is far too much is handed back.
func TestSlotsHold(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	release, entered := make(chan struct{}), make(chan struct{}, 8)
	worker := sdktest.Start(t, program(func(context.Context, input) (string, error) {
		n := now.Add(1)
		entered <- struct{}{}
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); {
			m = most.Load()
		}
		<-release
		now.Add(-1)
		return "", nil
	}), sdktest.Slots(3))
	runs := make([]*sdktest.Run, 8)
	for i := range runs {
		runs[i] = worker.Begin(`{}`)
	}
	handedBack := 0
	for _, run := range runs[6:] {
		if f := asFault(t, second(run.Wait())); f.Kind == fault.Interrupted {
			handedBack++
		}
	}
	runs[5].Cancel("cancelled") // while it waits
	if f := asFault(t, second(runs[5].Wait())); f.Kind != fault.Cancelled {
		t.Errorf("cancelled while it waited: %v", f)
	}
	for range 3 {
		<-entered
	}
	close(release)
	for _, run := range runs[:5] {
		if _, err := run.Wait(); err != nil {
			t.Error(err)
		}
	}
	if most.Load() != 3 || handedBack != 2 {
		t.Errorf("%d at once, %d handed back; want 3 and 2", most.Load(), handedBack)
	}
}

// Configure is called once with what the manager said; its failure is a text for the operator, and no task follows it.
func TestConfigure(t *testing.T) {
	t.Parallel()
	var got sdk.Config
	w := sdk.Worker{Name: "t", Slots: 2, Configure: func(ctx context.Context, c sdk.Config) error {
		got = c
		sdk.Logger(ctx).Info("configured", "options", len(c.Options))
		switch string(c.Options) {
		case `"fail"`:
			return errors.New("open the store: no such directory\xff")
		case `"panic"`:
			panic("no store")
		}
		return nil
	}}
	nothing := func(context.Context, json.RawMessage) (any, error) { return nil, nil }
	worker := sdktest.Start(t, sdk.New(w, nothing), sdktest.Options(t, map[string]int{"a": 1}))
	if want := (sdk.Config{Queue: "t", Options: json.RawMessage(`{"a":1}`), Slots: 2, Manager: "sdktest"}); got.Queue != want.Queue ||
		string(got.Options) != string(want.Options) || got.Slots != want.Slots || got.Manager != want.Manager {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := worker.Configure(t.Context(), sdk.Config{}); err == nil || !strings.Contains(err.Error(), "configured before") {
		t.Errorf("configured twice: %v", err)
	}
	if _, err := worker.Run(t.Context(), `{}`); err != nil {
		t.Error(err)
	}
	if logs := worker.Logs(); len(logs) != 1 || logs[0].Message != "configured" || logs[0].Run != nil {
		t.Errorf("got logs %+v", logs)
	}
	for options, want := range map[string]string{`"fail"`: "open the store: no such directory\uFFFD", `"panic"`: "no store"} {
		worker := sdktest.Start(t, sdk.New(w, nothing), sdktest.Unconfigured())
		err := worker.Configure(t.Context(), sdk.Config{Options: json.RawMessage(options)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", options, err, want)
		}
	}
}

// Instructions that make no sense do no harm: a second stream, a run begun twice, a cancel of no run, an unknown instruction.
func TestNonsense(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	worker := sdktest.Start(t, gated(release))
	run := worker.Begin(`{"name":"x"}`)
	<-run.Begun()
	worker.Send(
		&workerv1.Instruction{},
		&workerv1.Instruction{Kind: &workerv1.Instruction_Cancel{Cancel: &workerv1.Cancel{Run: 999}}},
		&workerv1.Instruction{Kind: &workerv1.Instruction_Task{Task: &workerv1.Task{Run: 1}}},
		&workerv1.Instruction{Kind: &workerv1.Instruction_DumpStacks{DumpStacks: &workerv1.DumpStacks{Request: 1 << 60}}},
	)
	worker.Send()
	if err := worker.SecondStream(t.Context()); err == nil || !strings.Contains(err.Error(), "one in its life") {
		t.Errorf("a second stream: %v", err)
	}
	if text, err := worker.Stacks(t.Context()); err != nil || !strings.Contains(text, "TestNonsense") {
		t.Errorf("got stacks %.200s, %v", text, err)
	}
	close(release)
	if result, err := run.Wait(); err != nil || string(result) != `"x"` {
		t.Errorf("got %s, %v", result, err)
	}
	if logs := worker.Logs(); len(logs) != 1 || !strings.Contains(logs[0].Message, "begun") && !strings.Contains(logs[0].Message, "twice") {
		t.Errorf("got logs %+v", logs)
	}
}

// Tasks, cancels and a drain that cross each other leave no task without its one outcome.
func TestStress(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, program(func(ctx context.Context, in input) (int, error) {
		sdk.Progress(ctx, 1, 2, "half")
		sdk.Logger(ctx).Info("here", "n", in.N)
		if in.N%3 == 0 {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}
		return in.N, nil
	}), sdktest.Slots(8))
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 50 {
				n := g*50 + i
				run := worker.Begin(input{N: n})
				if n%3 == 0 {
					run.Cancel("cancelled")
				}
				_, err := run.Wait()
				var f *fault.Fault
				if err != nil && !errors.As(err, &f) {
					t.Errorf("task %d: %v", n, err)
				}
				if n == 170 {
					worker.Drain()
				}
			}
		})
	}
	group.Wait()
}
