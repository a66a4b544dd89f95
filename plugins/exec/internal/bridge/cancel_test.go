package bridge_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
)

// begin starts a task and waits until the program is at it.
func begin(t *testing.T, w *sdktest.Worker, what string) *sdktest.Run {
	t.Helper()
	r := w.Begin(order{Do: what})
	eventually(t, "the task to begin", func() bool { return len(r.Progress()) > 0 })
	return r
}

// A program that answers its cancel line ends its task in its own words, and its process goes on; the reason decides what
// the task's end is called.
func TestCancelAnswered(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", map[string]any{"cancel_grace": "30s"})
	before := pid(t, w)
	for reason, kind := range map[string]fault.Kind{"timeout": fault.Timeout, "cancelled": fault.Cancelled, "stop": fault.Interrupted} {
		r := begin(t, w, "polite")
		r.Cancel(reason)
		_, err := r.Wait()
		check(t, err, kind, "cancel because of "+reason)
	}
	if after := pid(t, w); after != before {
		t.Errorf("process %d took the place of %d", after, before)
	}
}

// A program that reads nothing while it works gets SIGTERM after the grace; what it answers then counts.
func TestCancelBySIGTERM(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", map[string]any{"term_grace": "30s"})
	r := begin(t, w, "terminate")
	r.Cancel("cancelled")
	if result, err := r.Wait(); err != nil || string(result) != `"saved"` {
		t.Errorf("got %s, %v", result, err)
	}
	want(t, w, order{Do: "echo", Value: json.RawMessage(`1`)}, `1`)
}

// A program that ignores SIGTERM, and one that is frozen, are gone after both graces; the worker goes on with a new one.
func TestCancelByForce(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"stubborn", "freeze"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, _ := start(t, "serve", nil)
			before := pid(t, w)
			r := begin(t, w, what)
			asked := time.Now()
			r.Cancel("timeout")
			_, err := r.Wait()
			took := time.Since(asked)
			check(t, err, fault.Timeout, "did not heed the request to end within cancel_grace (300ms), and was ended by the signal killed")
			if took < 600*time.Millisecond {
				t.Errorf("it was ended after %s: its graces are 600ms", took)
			}
			if running(before) {
				t.Errorf("process %d is still there", before)
			}
			want(t, w, order{Do: "echo", Value: json.RawMessage(`1`)}, `1`)
		})
	}
}

// A frozen program that has not read its task does not hold up its end, though the task fills the pipe.
func TestCancelWhileWriting(t *testing.T) {
	t.Parallel()
	w, _ := start(t, "serve", nil)
	frozen := begin(t, w, "freeze")
	frozen.Cancel("cancelled")
	if _, err := frozen.Wait(); err == nil {
		t.Error("a frozen program answered")
	}
	// The new child freezes in its first task; the pad keeps the pipe full.
	r := w.Begin(order{Do: "freeze", Text: strings.Repeat("x", 1<<20)})
	eventually(t, "the task to begin", func() bool { return len(r.Progress()) > 0 })
	r.Cancel("cancelled")
	_, err := r.Wait()
	check(t, err, fault.Cancelled, "did not heed the request to end")
}
