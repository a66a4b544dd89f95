package bridge_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/exec/internal/bridge"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// One child serves one task after the other, and learns of each what there is to know.
func TestPersistentServes(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", nil)
	want(t, w, `{"do": "echo", "value": {"a": [1, "<&>\u2028"],
		"b": null}}`, `{"a":[1,"<&>\u2028"],"b":null}`)
	want(t, w, order{Do: "nothing"}, `null`)
	first := pid(t, w)
	id := task.ID{Queue: "test", Key: "k"}
	text, err := w.Run(t.Context(), order{Do: "about"}, sdktest.ID(id), sdktest.Attempt(3), sdktest.Deadline(time.Now().Add(time.Hour)))
	var about struct {
		V, Attempt, PID int
		ID, Kind, Env   string
		Deadline        bool
	}
	if err != nil || json.Unmarshal(text, &about) != nil {
		t.Fatalf("got %s, %v", text, err)
	}
	if about.V != 1 || about.ID != "test:k" || about.Kind != "test" || about.Attempt != 3 || !about.Deadline || about.PID != first {
		t.Errorf("the program was told %s; it was process %d before", text, first)
	}
}

// What a program says beside its answer arrives: progress, log lines, and plain text as a log line; what comes after the
// answer is dropped and costs nothing.
func TestPersistentReports(t *testing.T) {
	t.Parallel()
	w, stderr := start(t, "serve", nil)
	r := w.Begin(order{Do: "progress"})
	if result, err := r.Wait(); err != nil || string(result) != "1" {
		t.Fatalf("got %s, %v", result, err)
	}
	if got := r.Progress(); len(got) != 1 || got[0] != (task.Progress{Done: 1, Total: 2, Note: "half"}) {
		t.Errorf("progress: %+v", got)
	}
	var lines []string
	for _, l := range r.Logs() {
		lines = append(lines, fmt.Sprintf("%s %s %v", l.Level, l.Message, l.Attributes))
	}
	wanted := []string{"WARN careful map[n:7]", `INFO {"type":"later","run":1} map[stream:stdout]`, "INFO plain words map[stream:stdout]"}
	if !slices.Equal(lines, wanted) {
		t.Errorf("log lines of the run: %q, want %q", lines, wanted)
	}
	want(t, w, order{Do: "echo", Value: json.RawMessage(`2`)}, `2`)
	logged := func(level slog.Level, part string) bool {
		return slices.ContainsFunc(w.Logs(), func(l sdktest.Log) bool { return l.Level == level && strings.Contains(l.Message, part) })
	}
	if !logged(slog.LevelWarn, "answered a run that it is not running") || !strings.Contains(stderr.String(), "a banner of the interpreter\n") {
		t.Errorf("lines outside of runs: %+v, and on standard error: %q", w.Logs(), stderr)
	}
}

// An error says what kind it is, whether it is for good, and when to try again; half an error is completed.
func TestPersistentErrors(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", nil)
	f := wantFault(t, w, order{Do: "fail", Text: `"kind":"unreachable","message":"no answer","retry_after_ms":1500,"detail":"a stack"`}, fault.Unreachable, "no answer")
	if f.Permanent || f.RetryAfter == nil || *f.RetryAfter != 1500*time.Millisecond || f.Detail != "a stack" {
		t.Errorf("got %+v", f)
	}
	f = wantFault(t, w, order{Do: "fail", Text: `"kind":"of tomorrow","permanent":true`}, fault.Failed, "without a message")
	if !f.Permanent || f.RetryAfter != nil {
		t.Errorf("got %+v", f)
	}
	wantFault(t, w, order{Do: "fail", Text: `"kind":"too_large","message":"a file"`}, fault.TooLarge, "a file")
	want(t, w, order{Do: "echo", Value: json.RawMessage(`1`)}, `1`)
}

// An answer that cannot be understood ends its task at once, and the child goes on; a wrong report is only dropped.
func TestPersistentMisunderstood(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", nil)
	before := pid(t, w)
	for text, message := range map[string]string{
		`{"type": "result", "run": RUN, "result": NaN}`:                                         "not valid JSON",
		`{"type":"result","result":1}`:                                                          `has no "run"`,
		`{"type":"result","run":"RUN","result":1}`:                                              "cannot be understood",
		`{"type":"error","run":RUN,"retry_after_ms":"soon"}`:                                    "cannot be understood",
		`{"type":"progress","run":RUN,"done":-1}` + "\n" + `{"type":"error","message":"later"}`: `has no "run"`,
	} {
		wantFault(t, w, order{Do: "raw", Text: text}, fault.Protocol, message)
	}
	if after := pid(t, w); after != before {
		t.Errorf("process %d took the place of %d", after, before)
	}
}

// Payloads and results of megabytes go through; a text of a megabyte without an end is a line of the log, cut.
func TestPersistentLarge(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", nil)
	large := `"` + strings.Repeat("é", 3<<19) + `"`
	want(t, w, `{"do":"size","value":`+large+`}`, fmt.Sprint(len(large)))
	result, err := do(t, w, order{Do: "big", N: 3 << 20})
	if err != nil || len(result) != 3<<20+2 {
		t.Errorf("got %d bytes, %v", len(result), err)
	}
	r := w.Begin(order{Do: "junk", N: 1 << 20})
	if result, err := r.Wait(); err != nil || string(result) != `"after junk"` {
		t.Errorf("got %s, %v", result, err)
	}
	if logs := r.Logs(); len(logs) != 1 || len(logs[0].Message) < 1000 || strings.Trim(logs[0].Message, "x") != "" {
		t.Errorf("got %d log lines", len(logs))
	}
}

// A result over its bound is a clear fault for good, whether the line or only the result is too long; the next task runs.
func TestPersistentTooLarge(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", nil)
	for _, size := range []int{task.MaxResult, 5 << 20} {
		if f := wantFault(t, w, order{Do: "big", N: size}, fault.TooLarge, "store"); !f.Permanent {
			t.Errorf("%d bytes: %s is not permanent", size, f.Message)
		}
	}
	want(t, w, order{Do: "echo", Value: json.RawMessage(`1`)}, `1`)
}

// A child that ends in the middle of a task crashes that task, with its exit code or signal and its last words; the next
// task gets a new child.
func TestPersistentCrash(t *testing.T) {
	t.Parallel()
	w, stderr := start(t, "serve", nil)
	before := pid(t, w)
	f := wantFault(t, w, order{Do: "exit", N: 7}, fault.Crash, "ended with exit code 7 while it ran the task: last words")
	if f.Permanent || f.Detail != "a banner of the interpreter\nfirst words\nlast words" {
		t.Errorf("got %+v", f)
	}
	if after := pid(t, w); after == before {
		t.Error("the dead process answered")
	}
	wantFault(t, w, order{Do: "die"}, fault.Crash, "signal killed")
	wantFault(t, w, order{Do: "exit", N: 0}, fault.Crash, "exit code 0")
	want(t, w, order{Do: "echo", Value: json.RawMessage(`1`)}, `1`)
	if !strings.Contains(stderr.String(), "first words\nlast words\n") {
		t.Errorf("the worker's standard error: %q", stderr)
	}
}

// A child that closes its output can never answer: it is ended, and so is its task.
func TestPersistentClosesItsOutput(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", nil)
	wantFault(t, w, order{Do: "close"}, fault.Crash, "signal killed")
	want(t, w, order{Do: "echo", Value: json.RawMessage(`1`)}, `1`)
}

// What a child leaves behind is killed, though it holds the child's streams; a child that went between two tasks costs none.
func TestPersistentLeavesNothing(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", nil)
	text, err := do(t, w, order{Do: "leave"})
	var left int
	if err != nil || json.Unmarshal(text, &left) != nil {
		t.Fatalf("got %s, %v", text, err)
	}
	eventually(t, "the end of what the child left", func() bool { return !running(left) })
	want(t, w, order{Do: "echo", Value: json.RawMessage(`1`)}, `1`)
}

// running reports whether a process is there and not a zombie that its parent has not collected.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// Each slot has a child of its own, so that tasks run side by side and the death of one costs no other.
func TestPersistentSlots(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", nil, sdktest.Slots(2))
	waiting := w.Begin(order{Do: "polite"})
	eventually(t, "the first task to begin", func() bool { return len(waiting.Progress()) > 0 })
	wantFault(t, w, order{Do: "die"}, fault.Crash, "signal killed")
	want(t, w, order{Do: "echo", Value: json.RawMessage(`1`)}, `1`)
	waiting.Cancel("cancelled")
	_, err := waiting.Wait()
	check(t, err, fault.Cancelled, "cancel because of cancelled")
}

// When the worker is drained its running task finishes; then each child is told, and is gone when the worker is.
func TestPersistentDrain(t *testing.T) {
	t.Parallel()
	note := filepath.Join(t.TempDir(), "note")
	w, _ := start(t, "serve", map[string]any{"note": note})
	child := pid(t, w)
	r := w.Begin(order{Do: "polite"})
	eventually(t, "the task to begin", func() bool { return len(r.Progress()) > 0 })
	w.Drain()
	r.Cancel("stop")
	_, err := r.Wait()
	check(t, err, fault.Interrupted, "cancel because of stop")
	if code, err := w.Exit(t.Context()); code != 0 || err != nil {
		t.Errorf("the worker ended with %d, %v", code, err)
	}
	if text, err := os.ReadFile(note); string(text) != "drained" {
		t.Errorf("the child noted %q, %v", text, err)
	}
	if err := syscall.Kill(child, 0); err == nil {
		t.Errorf("the child %d is still there", child)
	}
}

// A command that cannot serve is found out before any task is spent on it, in words that name the command and the remedy.
func TestPersistentDoesNotStart(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, how string
		command   []string
		want      []string
	}{
		{"broken", "broken", []string{self, "--worker"}, []string{self + " --worker", "ended with exit code 255 while it was being started", "Parse error"}},
		{"php", "unopened", []string{self}, []string{"ended with exit code 1 while it was being started: Could not open input file"}},
		{"mute", "mute", []string{self}, []string{`did not write {"type":"ready"} within 1s`, "PROTOCOL.md", "start_timeout"}},
		{"future", "future", []string{self}, []string{"version 2", "version 1"}},
		{"absent", "", []string{"no-such-interpreter", "x"}, []string{`"no-such-interpreter" is not in PATH=`, "install it"}},
		{"absent path", "", []string{"/nowhere/worker"}, []string{"/nowhere/worker", "correct its path"}},
		{"no program", "", []string{"./program_test.go"}, []string{"program_test.go", "make it executable"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := sdktest.Start(t, bridge.Program(bridge.CommandLine{Name: "test", Command: test.command}, &buffer{}), sdktest.Unconfigured())
			options, err := json.Marshal(map[string]any{"env": map[string]string{envProgram: test.how}, "start_timeout": "1s"})
			if err != nil {
				t.Fatal(err)
			}
			err = w.Configure(t.Context(), sdk.Config{Queue: "test", Options: options, Slots: 1})
			for _, part := range test.want {
				if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "unavailable: ") {
					t.Errorf("got %v, want it to say %q", err, part)
				}
			}
		})
	}
}

// A child that cannot be replaced fails the task as something missing, not as the task's own fault.
func TestPersistentIsNotReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "worker.sh")
	text := "#!/bin/sh\n" + `echo '{"type":"ready"}'; read -r line; rm worker.sh; exit 9` + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	w := sdktest.Start(t, bridge.Program(bridge.CommandLine{Name: "test", Command: []string{"./worker.sh"}}, &buffer{}),
		sdktest.Options(t, map[string]any{"dir": dir, "start_timeout": "20s"}))
	wantFault(t, w, `{}`, fault.Crash, "exit code 9")
	wantFault(t, w, `{}`, fault.Unavailable, "worker.sh")
}
