package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/exec/internal/bridge"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
)

// patience bounds what a test waits for. It is long: these tests share their machine.
const patience = 30 * time.Second

// buffer is the worker's standard error.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start starts a worker around this test binary, which behaves as said.
func start(t *testing.T, how string, more map[string]any, opts ...sdktest.Option) (*sdktest.Worker, *buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{envProgram: how, "GORACE": "atexit_sleep_ms=0"} // a child need not wait at its end
	options := map[string]any{"env": env, "start_timeout": "20s", "cancel_grace": "300ms", "term_grace": "300ms"}
	for name, value := range more {
		if name == "note" {
			env["BRIDGE_TEST_NOTE"] = value.(string)
			continue
		}
		options[name] = value
	}
	errors := &buffer{}
	line := bridge.CommandLine{Name: "test", Slots: 1, Command: []string{self}}
	return sdktest.Start(t, bridge.Program(line, errors), append(opts, sdktest.Options(t, options))...), errors
}

// once starts a worker that runs a shell's script for each task.
func once(t *testing.T, script string, opts ...sdktest.Option) (*sdktest.Worker, *buffer) {
	t.Helper()
	errors := &buffer{}
	line := bridge.CommandLine{Name: "test", Slots: 1, Once: true, Command: []string{"sh", "-c", script}}
	options := map[string]any{"cancel_grace": "300ms"}
	return sdktest.Start(t, bridge.Program(line, errors), append(opts, sdktest.Options(t, options))...), errors
}

// do runs one order.
func do(t *testing.T, w *sdktest.Worker, o any) (json.RawMessage, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return w.Run(ctx, o)
}

// want runs one order and checks its result.
func want(t *testing.T, w *sdktest.Worker, o any, result string) {
	t.Helper()
	got, err := do(t, w, o)
	if err != nil || string(got) != result {
		t.Errorf("%+v: got %.200s, %v; want %.200s", o, got, err, result)
	}
}

// wantFault runs one order and checks how it fails.
func wantFault(t *testing.T, w *sdktest.Worker, o any, kind fault.Kind, message string) fault.Fault {
	t.Helper()
	got, err := do(t, w, o)
	f := check(t, err, kind, message)
	if err == nil {
		t.Errorf("%+v: got %.200s", o, got)
	}
	return f
}

func check(t *testing.T, err error, kind fault.Kind, message string) fault.Fault {
	t.Helper()
	var f *fault.Fault
	if !errors.As(err, &f) {
		t.Errorf("got %v, want a fault", err)
		return fault.Fault{}
	}
	if f.Kind != kind || !strings.Contains(f.Message, message) {
		t.Errorf("got %v, want %s with %q", f, kind, message)
	}
	return *f
}

// pid asks the program for its number.
func pid(t *testing.T, w *sdktest.Worker) int {
	t.Helper()
	text, err := do(t, w, order{Do: "about"})
	var about struct {
		PID int `json:"pid"`
	}
	if err != nil || json.Unmarshal(text, &about) != nil {
		t.Fatalf("ask the program what it is: %s, %v", text, err)
	}
	return about.PID
}

// eventually waits for something to become true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.NewTimer(patience)
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
