package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"

	"github.com/drover-jobs/drover/console/internal/command"
)

// attach returns a console on a manager that is served over a socket.
func attach(t *testing.T, m *manager) *console {
	t.Helper()
	c := newConsole(completed(), dead(), running(), waiting(), killed(), held(), retried())
	c.attached = startManager(t, m)
	return c
}

// fileInfo is a file that is a socket of some mode.
type fileInfo struct {
	fs.FileInfo
	mode fs.FileMode
}

func (f fileInfo) Mode() fs.FileMode { return f.mode }

// What a person and what a program reads of each command of the control service stays as it is, and nothing hostile in it
// reaches the terminal.
func TestControlOutput(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"explain": "explain feed-pull", "explain-json": "explain feed-pull --json", "explain-unknown": "explain feed-pul",
		"locks": "locks", "locks-json": "locks --json", "managers": "managers", "managers-json": "managers --json",
		"schedules": "schedules", "schedules-json": "schedules --json", "schedules-one": "schedules nightly", "schedules-paused": "schedules often",
		"schedules-unknown": "schedules nigtly", "schedule-pause": "schedule pause nightly", "schedule-pause-json": "schedule pause nightly --json", "schedule-resume": "schedule resume nightly",
		"schedule-run": "schedule run nightly", "schedule-run-json": "schedule run nightly --json", "schedule-verb": "schedule stop nightly", "schedule-set-none": "schedule set nightly",
		"tasks": "tasks feed-pull", "tasks-json": "tasks feed-pull --state dead --limit 2 --json", "tasks-payload": "tasks feed-pull --payload --state dead", "why-dead": "why feed-pull:dead", "tasks-none": "tasks feed-pull --state failed",
		"tasks-state": "tasks feed-pull --state ded", "tasks-unknown": "tasks feedpull",
		"why-killed": "why feed-pull:killed", "why-killed-json": "why feed-pull:killed --json", "why-held": "why feed-pull:held",
		"why-running": "why feed-pull:running", "why-done": "why feed-pull:done", "why-due": "why feed-pull:waiting", "task-history": "task feed-pull:killed",
		"why-retried": "why feed-pull:retried", "task-retried": "task feed-pull:retried",
		"retry-filtered": "retry --dead feed-pull --reason memory-max --older 1h --dry-run", "drop-dry-json": "drop --dead feed-pull --dry-run --json",
		"export": "export feed-pull", "export-unknown": "export feedpull", "export-json": "export feed-pull --match x --json",
		"retry": "retry feed-pull:dead feed-pull:running", "retry-dead": "retry --dead feed-pull --reason timeout", "retry-json": "retry feed-pull:dead --json",
		"drop": "drop feed-pull:dead --yes", "drop-dead-json": "drop --dead feed-pull --yes --json",
		"pause": "pause feed-pull", "pause-here-json": "pause feed-pull --here --json", "pause-unknown": "pause feed-pulls", "resume": "resume feed-pull",
		"restart": "restart feed-pull", "restart-worker": "restart 17 --json", "restart-unknown": "restart 99",
		"kill": "kill 17 --yes", "kill-json": "kill 17 --yes --json", "kill-unknown": "kill 99 --yes",
		"logs": "logs 17", "logs-json": "logs 17 -n 2 --json", "logs-unknown": "logs 99", "stacks": "stacks 17", "stacks-json": "stacks 17 --json", "stacks-none": "stacks 18",
		"settings": "settings", "settings-queue": "settings feed-pull", "setting": "settings feed-pull max_workers", "setting-dotted": "settings manager.max_memory",
		"settings-json": "settings manager --json", "setting-unknown": "settings feed-pull max_worker", "settings-unknown": "settings feedpull",
		"set": "set feed-pull.max_workers=2 manager.max_memory=1GiB", "set-dry-json": "set feed-pull.max_workers=2 --dry-run --json",
		"set-same": "set feed-pull.max_workers=8", "set-invalid": "set feed-pull.max_workers=9999", "set-invalid-json": "set feed-pull.max_workers=9999 --json",
		"unset": "unset feed-pull.priority", "diff": "diff", "diff-json": "diff --json", "undo": "undo", "save": "save", "save-json": "save --json",
		"reload": "reload", "reload-json": "reload --json", "doctor": "doctor", "doctor-json": "doctor --json",
		"status-control": "status", "workers-control": "workers", "plugins-control": "plugins",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := attach(t, &manager{})
			c.mode = fs.ModeSocket | 0o660
			c.files = map[string]string{"/proc/4242/cmdline": "bin/droverd\x00", "/proc/4242/limits": "Limit  Soft  Hard  Units\nMax open files            1024                 524288               files\n"}
			code, out, errs := c.run(t.Context(), strings.Fields(line)...)
			golden(t, "control/"+name, fmt.Sprintf("$ drover %s\n%s--- stderr\n%s--- exit %d\n", line, out, errs, code))
			if strings.ContainsAny(out+errs, "\x1b\a\u009b") {
				t.Errorf("a hostile byte reached the terminal: %q %q", out, errs)
			}
			for width := 33; width < 100 && !strings.Contains(line, "--json"); width += 13 {
				c.width = width
				if _, out, _ := c.run(t.Context(), strings.Fields(line)...); shapes(line) {
					fits(t, out, width)
				}
			}
		})
	}
}

// What was saved comes back with a restart, whatever was taken back or changed since: that is said where it is done, and in diff.
func TestWarnsOfSaved(t *testing.T) {
	t.Parallel()
	const warning = "A restart of the manager brings feed-pull.max_workers=12 back, which is saved: save again to keep what holds now."
	for line, warned := range map[string]bool{
		"undo": true, "diff": true, "set feed-pull.max_workers=2": true, "unset feed-pull.max_workers": true,
		"set feed-pull.slots=2": false, "set feed-pull.max_workers=2 --dry-run": false, "settings": false,
	} {
		for _, saved := range []string{"12", "8", ""} {
			c := attach(t, &manager{saved: saved})
			_, out, errs := c.run(t.Context(), strings.Fields(line)...)
			if want := warned && saved == "12"; strings.Contains(errs, warning) != want || strings.Contains(out, "brings") {
				t.Errorf("%s with %q saved: warned %v, wanted %v: %s%s", line, saved, !want, want, out, errs)
			}
		}
		if line == "diff" || !warned {
			continue
		}
		if _, out, _ := attach(t, &manager{saved: "12"}).run(t.Context(), strings.Fields(line+" --json")...); !strings.Contains(out, `"restart_brings_back":[{"queue":"feed-pull","name":"max_workers","value":"12"}]`) {
			t.Errorf("%s --json: %s", line, out)
		}
	}
}

// diff lists what a restart changes although it is as the file says, and doctor and settings warn of it.
func TestSavedDiffers(t *testing.T) {
	t.Parallel()
	run := func(line string) string {
		_, out, _ := attach(t, &manager{saved: "12"}).run(t.Context(), strings.Fields(line)...)
		return out
	}
	for line, want := range map[string]string{
		"diff":                           "live, but 12 is saved",
		"settings feed-pull":             "live, but 12 is saved",
		"settings feed-pull max_workers": "12, which a restart brings back",
		"doctor":                         "warning  settings: feed-pull.max_workers is 8, but 12 is saved, and a restart brings that back",
		"diff --json":                    `"saved_value":"12"`,
	} {
		if out := run(line); !strings.Contains(out, want) {
			t.Errorf("%s: %q is not in\n%s", line, want, out)
		}
	}
	m := &manager{saved: "9", slots: "5"}
	_, out, _ := attach(t, m).run(t.Context(), "diff")
	if !strings.Contains(out, "file, but 5 is saved") {
		t.Errorf("of a value as in the file:\n%s", out)
	}
}

// A manager that does not look at what it stands on leaves the console to look at its broker, locks, open files and disk.
func TestDoctorByItself(t *testing.T) {
	t.Parallel()
	c := attach(t, &manager{blind: true})
	c.files = map[string]string{"/proc/4242/cmdline": "bin/droverd\x00", "/proc/4242/limits": "Max open files            1024                 524288               files\n"}
	_, out, _ := c.run(t.Context(), "doctor")
	for _, want := range []string{"broker: embedded", "locks: memcached", "open files: the manager may open 1024", "disk: 1.0 GiB of", "unknown  what the manager stands on"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if _, out, _ := attach(t, &manager{}).run(t.Context(), "doctor"); !strings.Contains(out, "disk on one: 9.0 GiB") || strings.Contains(out, "disk: ") || strings.Count(out, " locks: ") != 1 {
		t.Errorf("with a manager that looks:\n%s", out)
	}
}

// What to try of a plugin that does not start is the script behind the plugin exec, which by hand explains itself only.
func TestDoctorOnScripts(t *testing.T) {
	t.Parallel()
	for want, command := range map[string][]string{
		"try its command: drover plugin test --exec node worker.mjs (":   {"bin/plugins/exec", "--name", "t", "--", "node", "worker.mjs"},
		"try its command: drover plugin test --exec --once sh work.sh (": {"/opt/exec", "--name", "t", "--once", "--", "sh", "work.sh"},
		"run its command by hand: /opt/exec --name t":                    {"/opt/exec", "--name", "t"},
	} {
		if _, out, _ := attach(t, &manager{broken: command}).run(t.Context(), "doctor"); !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// A worker that is not there is noticed before anything is asked.
func TestKillOfNobody(t *testing.T) {
	t.Parallel()
	m := &manager{}
	c := attach(t, m)
	c.confirm = func(context.Context, string) (bool, error) {
		t.Error("it was asked")
		return true, nil
	}
	for _, line := range []string{"kill 999", "kill 999 --json"} {
		if code, _, errs := c.run(t.Context(), strings.Fields(line)...); code != command.Usage || !strings.Contains(errs, "no such worker: 999 (those that live: 17, 18)") {
			t.Errorf("%s: exit %d, %q", line, code, errs)
		}
	}
	if len(m.requests()) != 0 {
		t.Errorf("asked for %v", m.requests())
	}
}

// A queue of another manager is not called unknown: it is said who serves it, whatever was asked about it.
func TestQueueOfAnotherManager(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"queues import", "workers import", "pause import", "explain import", "settings import", "watch import", "set import.max_workers=nine",
	} {
		c := attach(t, &manager{})
		code, _, errs := c.run(t.Context(), strings.Fields(line)...)
		if code != command.Usage || !strings.Contains(errs, "import is a queue of another manager, m2 (pid 17 on two\\x1b[2J), which has not been heard of for 1m01s: ask that one") {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
	c := attach(t, &manager{})
	asked := ""
	c.confirm = func(_ context.Context, question string) (bool, error) {
		asked = question
		return false, nil
	}
	if code, _, errs := c.run(t.Context(), "drop", "--dead", "import"); code != command.Failed || asked != "Drop all dead letters of import for good?" {
		t.Errorf("asked %q, %d %s", asked, code, errs)
	}
}

// shapes reports whether a command fits its output to the terminal; what the others print may be copied whole.
func shapes(line string) bool {
	switch strings.Fields(line)[0] {
	case "tasks", "why", "doctor", "workers", "plugins", "diff":
		return true
	default:
		return false
	}
}

// fits checks that no line is wider than the terminal.
func fits(t *testing.T, out string, width int) {
	t.Helper()
	for line := range strings.Lines(out) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width && !strings.HasPrefix(line, "feed-pull:") {
			t.Errorf("a line of %d characters on %d columns: %q", n, width, line)
		}
	}
}

// Each command asks the manager for what its words say.
func TestRequests(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"pause feed-pull":                    `queue:"feed-pull"`,
		"pause feed-pull --here":             `queue:"feed-pull" here:true`,
		"resume feed-pull":                   `queue:"feed-pull"`,
		"restart feed-pull":                  `queue:"feed-pull"`,
		"restart 17":                         `worker:17`,
		"kill 17 --yes":                      `worker:17`,
		"retry feed-pull:a":                  `tasks:{ids:"feed-pull:a"}`,
		"retry --dead feed-pull":             `tasks:{dead:{queue:"feed-pull" limit:1000}}`,
		"drop --dead q --reason crash --yes": `tasks:{dead:{queue:"q" filter:{reason:"crash"} limit:1000}}`,
		"drop --dead q --older 1h --newer 2h --match x --yes": fmt.Sprintf(`tasks:{dead:{queue:"q" filter:{died_before_ms:%d died_since_ms:%d match:"x"} limit:1000}}`, now().Add(-time.Hour).UnixMilli(), now().Add(-2*time.Hour).UnixMilli()),
		"drop --dead q --dry-run":                             `tasks:{dead:{queue:"q" dry_run:true limit:1000}}`,
		"set q.v1.slots=2 manager.max_memory=off":             `changes:{queue:"q.v1" name:"slots" value:"2"} changes:{name:"max_memory" value:"off"} who:"ada"`,
		"set q.rate=10/s --dry-run":                           `changes:{queue:"q" name:"rate" value:"10/s"} who:"ada" dry_run:true`,
		"unset q.slots":                                       `changes:{queue:"q" name:"slots" unset:true} who:"ada"`,
		"undo":                                                `who:"ada"`,
		"save":                                                `who:"ada"`,
		"reload":                                              `who:"ada"`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			m := &manager{}
			c := attach(t, m)
			if code, _, errs := c.run(t.Context(), strings.Fields(line)...); code != command.Done {
				t.Fatalf("exit %d, %q", code, errs)
			}
			got := m.requests()
			if len(got) != 1 || strings.Join(strings.Fields(fmt.Sprint(got[0])), " ") != want {
				t.Errorf("asked for %v, want %s", got, want)
			}
		})
	}
}

// A wrong command line asks the manager for nothing, and the exit codes are those that scripts rely on.
func TestControlRefusals(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"retry": "which tasks?", "drop --yes": "which tasks?", "retry q:a --dead q": "not both", "retry q:a --reason crash": "goes with --dead", "retry --dead q --reason crush": `did you mean "crash"`, "retry q:a --match x": "goes with --dead", "drop q:a --dry-run": "goes with --dead",
		"tasks q --older 2h --newer 1h": "nothing is newer", "tasks q --older soon": "not a length of time",
		"drop q:a": "say --yes", "kill 17": "say --yes", "kill x --yes": "not a worker's number", "kill 0 --yes": "not a worker's number", "kill 17 --yes --json x": "does not take",
		"set slots=2": "names no setting", "set q.slots": "has no value", "set q.slots=": "has no value", "set .slots=1": "names no setting", "unset slots": "names no setting",
		"tasks q --limit 0": "whole number", "tasks q --limit many": "whole number", "logs 17 -n -1": "--lines", "logs 17 -x": "no such flag", "logs 17 --f": "no such flag", "logs 17 -follow": "no such flag",
		"watch --kind birds": "none of tasks", "watch a:b:{": "is not a task ID", "watch none": "no such queue", "explain": "needs more words",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			m := &manager{}
			code, _, errs := attach(t, m).run(t.Context(), strings.Fields(line)...)
			if code != command.Usage || !strings.Contains(errs, want) || len(m.requests()) != 0 {
				t.Errorf("exit %d, %q, asked %v; want 2 and %q", code, errs, m.requests(), want)
			}
		})
	}
}

// Who moves dead letters is told how many were moved before the manager went away.
func TestMovedBefore(t *testing.T) {
	t.Parallel()
	code, out, errs := attach(t, &manager{gone: true}).run(t.Context(), "retry", "--dead", "feed-pull")
	if code == command.Done || out != "" || !strings.Contains(errs, "Before that at least 25 dead letters of feed-pull: back in the queue.") || !strings.Contains(errs, "the manager stops") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

// An export to a file that fails half way leaves the file as it was, and nothing beside it.
func TestExportTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "dead.jsonl")
	if code, out, errs := attach(t, &manager{}).run(t.Context(), "export", "feed-pull", "--to", path); code != command.Done || !strings.HasPrefix(out, "25 dead letters of feed-pull: written to ") {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	before, err := os.ReadFile(path) //nolint:gosec // the test's own
	if err != nil || strings.Count(string(before), "\n") != 25 {
		t.Errorf("%d bytes, %v", len(before), err)
	}
	if code, _, errs := attach(t, &manager{}).run(t.Context(), "export", "feedpull", "--to", path); code != command.Usage {
		t.Errorf("exit %d, %q", code, errs)
	}
	after, err := os.ReadFile(path) //nolint:gosec // the test's own
	left, _ := os.ReadDir(dir)
	if err != nil || string(after) != string(before) || len(left) != 1 {
		t.Errorf("%d bytes instead of %d, %v; %v", len(after), len(before), err, left)
	}
}

// What cannot be taken back is asked for on a terminal, and only a yes does it.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for line, question := range map[string]string{
		"kill 17": "Kill worker 17 of feed-pull (pid 4250), which runs 4 tasks?", "drop feed-pull:a": "Drop feed-pull:a for good?",
		"drop feed-pull:a feed-pull:b": "Drop 2 tasks for good?", "drop --dead misbehave": "Drop all 2 dead letters of misbehave for good?",
		"drop --dead q --reason crash": "Drop all dead letters of q that died for crash, for good?",
	} {
		for _, sure := range []bool{true, false} {
			m := &manager{}
			c := attach(t, m)
			asked := ""
			c.confirm = func(_ context.Context, text string) (bool, error) { asked = text; return sure, nil }
			code, _, errs := c.run(t.Context(), strings.Fields(line)...)
			if asked != question || (code == command.Done) != sure || (len(m.requests()) == 1) != sure {
				t.Errorf("%s, %v: asked %q, exit %d, %q, requests %v", line, sure, asked, code, errs, m.requests())
			}
		}
	}
	c := attach(t, &manager{})
	c.confirm = func(context.Context, string) (bool, error) { return false, errors.New("hung up") }
	if code, _, errs := c.run(t.Context(), "kill", "17"); code != command.Failed || !strings.Contains(errs, "hung up") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// An answer that is an error says what to do, with an exit code that fits.
func TestControlErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		code command.Code
		says string
	}{
		"invalid":       {connect.NewError(connect.CodeInvalidArgument, errString("slots: 0 is not allowed")), command.Usage, "slots: 0 is not allowed"},
		"refused":       {connect.NewError(connect.CodeFailedPrecondition, errString("nothing to undo")), command.Failed, "nothing to undo"},
		"forbidden":     {connect.NewError(connect.CodePermissionDenied, errString("not on this socket")), command.Failed, "not on this socket"},
		"not built":     {connect.NewError(connect.CodeUnimplemented, errString("?")), command.Failed, "this manager cannot do that"},
		"broker":        {connect.NewError(connect.CodeUnavailable, errString("redis does not answer")), command.Failed, "redis does not answer"},
		"out of time":   {connect.NewError(connect.CodeDeadlineExceeded, errString("slow")), command.TimeRanOut, "did not answer in time"},
		"something odd": {errors.New("boom"), command.Failed, "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := attach(t, &manager{err: c.err}).run(t.Context(), "undo")
			if code != c.code || out != "" || !strings.Contains(errs, c.says) {
				t.Errorf("exit %d, %q, %q; want %d and %q", code, out, errs, c.code, c.says)
			}
		})
	}
}

// happenings of a manager, one of each sort and one that says nothing.
func watched() []*apiv1.WatchResponse {
	at := now().UnixMilli()
	return []*apiv1.WatchResponse{
		{AtMs: at, Happened: &apiv1.WatchResponse_Task{Task: &taskv1.Event{Id: "feed-pull:a", State: taskv1.State_STATE_RUNNING, Attempts: 1}}},
		{AtMs: at, Happened: &apiv1.WatchResponse_Task{Task: &taskv1.Event{Id: "feed-pull:a", State: taskv1.State_STATE_DEAD, Attempts: 1, FaultKind: taskv1.FaultKind_FAULT_KIND_CRASH, Message: "x\x1b[2J"}}},
		{AtMs: at, Happened: &apiv1.WatchResponse_Task{Task: &taskv1.Event{Id: "not an id"}}},
		{AtMs: at, Happened: &apiv1.WatchResponse_Worker{Worker: &apiv1.WorkerEvent{Worker: 17, Queue: "feed-pull", Pid: 4250, Event: "ended", Reason: "memory-max", Text: "300 MiB"}}},
		{AtMs: at, Happened: &apiv1.WatchResponse_Queue{Queue: &apiv1.QueueEvent{Event: "settings", Text: "ada: feed-pull.slots 4 -> 2"}}},
		{AtMs: at, Happened: &apiv1.WatchResponse_Queue{Queue: &apiv1.QueueEvent{Queue: "feed-pull", Event: "program-refused", Text: "bin/feed-pull: exit code 3"}}},
		{Happened: &apiv1.WatchResponse_Missed{Missed: 12}},
		{AtMs: at},
	}
}

// watch tells each event in a line, only those of the kind asked for, until it is interrupted, and that is no failure.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"watch": "watch", "watch-workers": "watch feed-pull --kind workers", "watch-json": "watch feed-pull:a --json",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := attach(t, &manager{happen: watched()})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			c.onOut = func(text string) { // the last event ends it
				if strings.Contains(text, "missing here") || strings.Contains(text, `"missed":12`) {
					cancel()
				}
			}
			code, out, errs := c.run(ctx, strings.Fields(line)...)
			golden(t, "control/"+name, fmt.Sprintf("$ drover %s\n%s--- stderr\n%s--- exit %d\n", line, out, errs, code))
		})
	}
}

// When the manager goes away while it is watched, watch says so, waits and goes on.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	c := attach(t, &manager{happen: watched(), cut: true})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c.onOut = func(text string) {
		if strings.Count(text, "missing here") == 2 {
			cancel()
		}
	}
	code, out, errs := c.run(ctx, "watch")
	if code != command.Done || strings.Count(out, "run 1 began") != 2 || errs != "drover: the manager went away; this waits for it and goes on\ndrover: the manager is back\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

// Completion offers what can stand in the place of the last word: states, kinds of failure, workers, settings with what they
// allow, and tasks that were seen.
func TestControlCompletion(t *testing.T) {
	t.Parallel()
	c := attach(t, &manager{})
	seen := &command.Seen{}
	var out, errs bytes.Buffer
	env := c.env(nil, &out, &errs)
	env.Seen = seen
	tree := command.New()
	call, err := tree.Parse([]string{"tasks", "feed-pull", "--state", "dead", "--limit", "2"})
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Run(t.Context(), env, call); err != nil {
		t.Fatal(err)
	}
	dead10 := ""
	for key := 'a'; key < 'a'+10; key++ { // a page
		dead10 += "feed-pull:" + string(key) + " "
	}
	for line, want := range map[string]string{
		"tasks feed-pull --state ":      "dead expired failed held quarantined running waiting",
		"tasks feed-pull --state=d":     "--state=dead",
		"tasks --state dead ":           "feed-pull misbehave",
		"tasks feed-pull --reason time": "timeout",
		"retry --dead ":                 "feed-pull misbehave",
		"retry ":                        "feed-pull: feed-pull:a feed-pull:b misbehave:",
		"why feed-pull:":                strings.TrimSpace(dead10),
		"cancel feed-pull:":             "feed-pull:a feed-pull:b feed-pull:waiting",
		"kill ":                         "17 18",
		"restart ":                      "17 18 feed-pull misbehave",
		"settings ":                     "feed-pull manager misbehave schedule:nightly schedule:often schedule:wrong",
		"schedules ":                    "nightly often wrong", "schedule ": "pause resume run set", "schedule pause n": "nightly", "schedule pause nightly ": "",
		"settings feed-pull m":                      "max_workers",
		"set feed-pull.":                            "feed-pull.max_workers= feed-pull.priority= feed-pull.slots=",
		"set feed-pull.slots=2 feed-pull.priority=": "feed-pull.priority=system feed-pull.priority=user",
		"set manager.max_memory=":                   "manager.max_memory=off",
		"set feed-pull.max_workers=":                "feed-pull.max_workers=4 feed-pull.max_workers=8",
		"unset ":                                    "feed-pull.max_workers feed-pull.priority",
		"logs 17 --f":                               "--follow",
		"submit feed-pull ":                         "force= mode= url=",
		"submit feed-pull url=x --in 5s ":           "force= mode=",
		"submit feed-pull force=":                   "force=false force=true",
		"submit feed-pull mode=":                    "mode=full mode=quick",
		"submit feed-pull url=":                     "",
		"submit misbehave ":                         "",
		"watch --kind ":                             "queues tasks workers",
		"logs --lines ":                             "",
	} {
		if got := strings.Join(tree.Complete(t.Context(), env, strings.Split(line, " ")), " "); got != want {
			t.Errorf("complete %q: %q, want %q", line, got, want)
		}
	}
}
