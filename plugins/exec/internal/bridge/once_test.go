package bridge_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// What a command prints is the result: JSON as it is, other text as a text, nothing as null. It may leave its input unread.
func TestOnceResults(t *testing.T) {
	t.Parallel()
	for script, result := range map[string]string{
		`cat`:                   `{"a":1}`,
		`echo '{"b": [1, 2]}'`:  `{"b":[1,2]}`,
		`printf 'two\nlines\n'`: `"two\nlines"`,
		`printf '\377'`:         `"�"`,
		`true`:                  `null`,
		`echo words >&2; wc -c`: `7`,
		`sleep 100 & echo 1`:    `1`, // what it leaves holds its output and is killed
		`printf '%s %s %s %s' "$DROVER_TASK_ID" "$DROVER_KIND" "$DROVER_QUEUE" "$DROVER_ATTEMPT"`: `"q:k test q 2"`,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			w, _ := once(t, script)
			got, err := w.Run(t.Context(), `{"a":1}`, sdktest.ID(task.ID{Queue: "q", Key: "k"}), sdktest.Attempt(2))
			if err != nil || string(got) != result {
				t.Errorf("got %s, %v; want %s", got, err, result)
			}
		})
	}
}

// The exit code says what sort of failure it was and whether trying again can help; the last line of standard error says
// the rest.
func TestOnceExitCodes(t *testing.T) {
	t.Parallel()
	w, stderr := once(t, `printf 'before\nthe reason\n' >&2; exit $(cat | tr -dc 0-9)`)
	for code, expected := range map[int]struct {
		kind      fault.Kind
		permanent bool
	}{
		1: {fault.Failed, false}, 255: {fault.Failed, false}, 64: {fault.Failed, true}, 65: {fault.InvalidPayload, true},
		66: {fault.Failed, true}, 69: {fault.Unavailable, false}, 70: {fault.Failed, false}, 74: {fault.Unavailable, false},
		75: {fault.Failed, false}, 76: {fault.Unreachable, false}, 77: {fault.Refused, true}, 78: {fault.Unavailable, false},
		127: {fault.Unavailable, false},
	} {
		f := wantFault(t, w, fmt.Sprintf(`{"n":%d}`, code), expected.kind, "ended with exit code "+strconv.Itoa(code))
		if f.Permanent != expected.permanent || !strings.HasSuffix(f.Message, ": the reason") || f.Detail != "before\nthe reason" {
			t.Errorf("exit code %d: %+v", code, f)
		}
	}
	if !strings.Contains(stderr.String(), "before\nthe reason\n") {
		t.Errorf("the worker's standard error: %q", stderr)
	}
}

// A command that a signal ends crashes its task.
func TestOnceCrash(t *testing.T) {
	t.Parallel()
	w, _ := once(t, `kill -SEGV $$`)
	wantFault(t, w, `{}`, fault.Crash, "was ended by the signal segmentation fault")
}

// Three megabytes go in and out; a result over its bound is a fault for good, and the command is not read to its end.
func TestOnceLarge(t *testing.T) {
	t.Parallel()
	w, _ := once(t, `cat`)
	text := `{"pad":"` + strings.Repeat("x", 3<<20) + `"}`
	if got, err := do(t, w, text); err != nil || string(got) != text {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	endless, _ := once(t, `yes`)
	if f := wantFault(t, endless, `{}`, fault.TooLarge, "store the result"); !f.Permanent {
		t.Errorf("%s is not permanent", f.Message)
	}
}

// A cancelled command gets SIGTERM, and SIGKILL when it does not heed it, and nothing that it started is left.
func TestOnceCancel(t *testing.T) {
	t.Parallel()
	for name, trap := range map[string]string{"heeds": `trap 'exit 3' TERM`, "ignores": `trap '' TERM`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			note := filepath.Join(t.TempDir(), "note")
			w, _ := once(t, trap+`; sleep 600 & echo $! >'`+note+`.new'; mv '`+note+`.new' '`+note+`'; while :; do wait; done`)
			r := w.Begin(`{}`)
			var text []byte
			eventually(t, "the command to begin", func() (is bool) {
				text, _ = os.ReadFile(note)
				return len(text) > 0
			})
			sleeper, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			r.Cancel("cancelled")
			_, err = r.Wait()
			if name == "heeds" {
				check(t, err, fault.Cancelled, "ended with exit code 3")
			} else {
				check(t, err, fault.Cancelled, "ended by the signal killed")
				if took := time.Since(begun); took < 300*time.Millisecond {
					t.Errorf("it was killed after %s, before its grace", took)
				}
			}
			// SIGKILL is sent before the task ends, and takes effect a moment later.
			eventually(t, "the end of what it started", func() bool { return !running(sleeper) })
		})
	}
}
