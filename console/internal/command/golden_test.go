package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

func completed() *task.Task {
	return &task.Task{
		ID: task.ID{Queue: "feed-pull", Key: "done"}, Kind: "feed-pull", State: task.Completed, Attempts: 2, Counters: task.Counters{Kills: 1},
		Result:    json.RawMessage(`{"feed_id":7,"status":"new","title":"日本 \u001b[2J"}`),
		Submitted: now().Add(-2 * time.Second), Started: now().Add(-1900 * time.Millisecond), Ended: now(),
		Queued: 100 * time.Millisecond, Run: 1900 * time.Millisecond, Manager: "dev",
	}
}

func dead() *task.Task {
	return &task.Task{
		ID: task.ID{Queue: "feed-pull", Key: "dead"}, Kind: "feed-pull", State: task.Dead, Attempts: 1, Counters: task.Counters{Failures: 1},
		Fault: fault.New(fault.Unreachable, "the server at 127.0.0.1:1 does not answer\x1b]0;owned\a").AsPermanent().WithDetail("line one\n\tline \x9b two"),
		Ended: now(), Run: 20 * time.Millisecond, Manager: "dev", Payload: json.RawMessage(`{"url":"http://127.0.0.1:1/\u009b","deep":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}`),
	}
}

func running() *task.Task {
	return &task.Task{
		ID: task.ID{Queue: "feed-pull", Key: "running"}, Kind: "feed-pull", State: task.Running, Attempts: 1,
		Progress: &task.Progress{Done: 3, Total: 10, Note: "reading"},
	}
}

func waiting() *task.Task {
	return &task.Task{ID: task.ID{Queue: "feed-pull", Key: "waiting"}, Kind: "other", State: task.Waiting, RunAt: now().Add(90 * time.Second), Payload: json.RawMessage(`{"url":"x"}`)}
}

// What a person and what a program reads of each command stays as it is, and nothing hostile in it reaches the terminal.
func TestOutput(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"status": "status", "status-json": "status --json", "queues": "queues", "queues-json": "--json queues", "queue": "queues misbehave", "queue-times": "queues feed-pull",
		"workers": "workers", "workers-none": "workers misbehave", "workers-json": "workers feed-pull --json", "plugins": "plugins", "plugins-json": "plugins --json",
		"task-completed": "task feed-pull:done", "task-dead": "task feed-pull:dead", "task-running": "task feed-pull:running", "task-waiting": "task feed-pull:waiting",
		"task-json": "task feed-pull:dead --json",
		"wait-one":  "wait feed-pull:done", "wait-many": "wait feed-pull:done feed-pull:dead feed-pull:gone", "wait-many-json": "wait feed-pull:done feed-pull:dead feed-pull:gone --json",
		"cancel": "cancel feed-pull:waiting feed-pull:running feed-pull:done", "cancel-json": "cancel --json feed-pull:waiting",
		"help": "help", "help-submit": "help submit", "help-flag": "wait --help", "help-json": "help --json", "version": "version", "version-json": "version --json",
		"unknown-command": "stauts", "unknown-flag": "status --jsno", "unknown-queue": "submit feedpull a=1", "unknown-queue-json": "queues feed-pul --json",
		"other-queue": "queues import", "completion-unknown": "completion fsih", "unknown-task": "task feed-pull:gone", "bad-id": "task nonsense",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(completed(), dead(), running(), waiting())
			code, out, errs := c.run(t.Context(), strings.Fields(line)...)
			golden(t, name, fmt.Sprintf("$ drover %s\n%s--- stderr\n%s--- exit %d\n", line, out, errs, code))
			if strings.ContainsAny(out+errs, "\x1b\a\u009b") {
				t.Errorf("a hostile byte reached the terminal: %q %q", out, errs)
			}
			if strings.Contains(line, "--json") {
				for l := range strings.Lines(out) {
					if !json.Valid([]byte(l)) {
						t.Errorf("not JSON: %q", l)
					}
				}
			}
		})
	}
}

// On a narrow terminal the tables of all commands fit.
func TestNarrow(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"queues", "workers", "plugins", "wait feed-pull:done feed-pull:dead"} {
		c := newConsole(completed(), dead())
		c.width = 60
		_, out, errs := c.run(context.Background(), strings.Fields(line)...)
		for l := range strings.Lines(out) {
			if n := len([]rune(strings.TrimSuffix(l, "\n"))); n > 60 {
				t.Errorf("%s: a line of %d characters: %q (%s)", line, n, l, errs)
			}
		}
	}
}

// The exit codes are those that scripts rely on.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]command.Code{
		"status": command.Done, "": command.Usage, "nonsense": command.Usage, "status extra": command.Usage, "submit": command.Usage, "wait": command.Usage,
		"wait feed-pull:done": command.Done, "wait feed-pull:dead": command.Failed, "wait feed-pull:gone": command.Failed,
		"wait feed-pull:done feed-pull:dead": command.Failed, "wait feed-pull:running --timeout 20ms": command.TimeRanOut,
		"wait feed-pull:dead feed-pull:running --timeout=20ms": command.TimeRanOut, "wait feed-pull:done --timeout soon": command.Usage,
		"submit feed-pull url=x --wait=20ms": command.TimeRanOut, "submit feed-pull --wait=": command.Usage, "submit feed-pull --in": command.Usage,
		"submit feed-pull --in 10": command.Usage, "task feed-pull:dead": command.Done, "cancel feed-pull:done": command.Failed,
		"queues none": command.Usage, "workers none": command.Usage, "help none": command.Usage, "--help": command.Done, "-h": command.Done, "--version": command.Done, "-version": command.Done, "--json --version": command.Done, "status --version": command.Usage,
		"submit feed-pull --wait -x": command.Usage, "--json": command.Usage, "status --json --json": command.Usage, "status --json=1": command.Usage,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			code, out, errs := newConsole(completed(), dead(), running()).run(t.Context(), strings.Fields(line)...)
			if code != want {
				t.Errorf("exit %d, want %d\n%s%s", code, want, out, errs)
			}
		})
	}
}
