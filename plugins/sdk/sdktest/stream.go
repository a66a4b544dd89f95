package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// Drain asks the worker to end once its running tasks have ended. Exit tells when it has.
func (w *Worker) Drain() {
	if !w.session.Opened() {
		w.stop() // without a stream there is nobody to tell; this is the manager's Shutdown
		return
	}
	w.session.Drain()
}

// HangUp breaks the Work stream, as the death of a manager does.
func (w *Worker) HangUp() { w.session.HangUp() }

// Exit waits for the worker's end and returns the exit code of its process, or ctx's error.
func (w *Worker) Exit(ctx context.Context) (int, error) {
	select {
	case <-w.life.exited:
		code, _ := w.life.Exit()
		return code, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the worker's end: %w", ctx.Err())
	}
}

// Stacks returns the stacks of the worker's goroutines. In a test they include the test's own.
func (w *Worker) Stacks(ctx context.Context) (string, error) { return w.session.Stacks(ctx) }

// SecondStream opens another Work stream and returns how the worker refused it; nil when it did not.
func (w *Worker) SecondStream(ctx context.Context) error { return w.session.SecondStream(ctx) }

// Logs returns all lines that the worker has logged so far, in the order of their arrival.
func (w *Worker) Logs() []Log { return w.session.Logs() }

// Send sends instructions as they are, in one message, for tests that say what no manager would.
// What cannot be sent is dropped, and every run ends with the reason.
func (w *Worker) Send(instructions ...*workerv1.Instruction) { w.session.Send(instructions...) }

// text returns a payload as JSON text.
func text(t testing.TB, payload any) []byte {
	t.Helper()
	switch p := payload.(type) {
	case string:
		return []byte(p)
	case []byte:
		return p
	case json.RawMessage:
		return p
	}
	encoded, err := json.Marshal(payload)
	if err != nil {
		t.Fatalf("write the payload as JSON: %v", err)
	}
	return encoded
}
