package command_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

func happenings() []client.Update {
	id := running().ID
	return []client.Update{
		{ID: id, Event: &task.Event{ID: id, State: task.Running, Attempts: 1}},
		{ID: id, Event: &task.Event{ID: id, State: task.Running, Attempts: 1, Progress: &task.Progress{Done: 1, Total: 4, Note: "a\x1b[2J"}}},
		{ID: id, Event: &task.Event{ID: id, State: task.Failed, Attempts: 1, Fault: fault.Crash}},
	}
}

// While it waits a terminal has one line that is redrawn and taken away; elsewhere there are lines; a program gets none of it.
func TestProgress(t *testing.T) {
	t.Parallel()
	show := func(live bool, words ...string) string {
		c := newConsole(completed())
		c.tasks.events, c.live = happenings(), live
		_, _, errs := c.run(t.Context(), words...)
		return errs
	}
	if got := show(true, "wait", "feed-pull:done"); !strings.Contains(got, "\r\x1b[Kfeed-pull:done") || !strings.HasSuffix(got, "\r\x1b[K") || !strings.Contains(got, `[#####---------------] 1/4 a\x1b[2J`) {
		t.Errorf("on a terminal: %q", got)
	}
	want := "feed-pull:running: run 1 began\nfeed-pull:running: [#####---------------] 1/4 a\\x1b[2J\nfeed-pull:running: run 1 failed: crash; it will be tried again\n"
	if got := show(false, "wait", "feed-pull:done"); got != want {
		t.Errorf("elsewhere: %q, want %q", got, want)
	}
	if got := show(true, "wait", "feed-pull:done", "--json"); got != "" {
		t.Errorf("for a program: %q", got)
	}
}

// Where lines cannot be redrawn, progress is a line a second at most, and the last change is said as well.
func TestProgressInLines(t *testing.T) {
	t.Parallel()
	c := newConsole(running())
	at, id := now(), running().ID
	c.clock = func() time.Time { // each look at the clock is 40 ms later: it is looked at once for each event, and when nothing comes
		at = at.Add(40 * time.Millisecond)
		return at
	}
	for i := range 60 {
		c.tasks.events = append(c.tasks.events, client.Update{ID: id, Event: &task.Event{ID: id, State: task.Running, Attempts: 1, Progress: &task.Progress{Done: uint64(i), Total: 60}}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c.onErr = func(text string) {
		if strings.Contains(text, " 59/60") {
			cancel()
		}
	}
	_, _, errs := c.run(ctx, "wait", id.String())
	if n := strings.Count(errs, "/60"); !strings.Contains(errs, " 0/60") || !strings.Contains(errs, " 59/60") || n < 3 || n > 10 {
		t.Errorf("%d lines:\n%s", n, errs)
	}
}

// On a terminal a long message is broken between words.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	c := newConsole()
	c.live, c.width = true, 40
	_, _, errs := c.run(t.Context(), "queues", "nothing", "--json")
	_, _, help := c.run(t.Context(), "queues", "nothing")
	for _, line := range strings.Split(strings.TrimSpace(help), "\n") {
		if len(line) > 40 {
			t.Errorf("%q of %q is too long", line, help)
		}
	}
	if strings.Join(strings.Fields(help), " ") != strings.Join(strings.Fields(errs), " ") {
		t.Errorf("%q is not %q", help, errs)
	}
}

// Help fits whatever terminal it is read on, but for lines that are to be copied.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	tree := command.New()
	lines := append(tree.Complete(t.Context(), &command.Env{}, nil), "")
	for _, name := range lines {
		for _, width := range []int{0, 40, 64, 100, 200} {
			c := newConsole()
			c.width = width
			_, out, _ := c.run(t.Context(), strings.Fields("help "+name)...)
			most := width
			if width == 0 {
				most = 100
			}
			for line := range strings.Lines(out) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > most && !strings.HasPrefix(line, "  drover ") && !strings.HasPrefix(line, "  ~/") || strings.HasSuffix(line, " \n") {
					t.Errorf("help %s on %d columns: %q", name, width, line)
				}
			}
		}
	}
}

// What goes wrong with a run is said with its reason, in one clean line that fits, and with what comes next.
func TestRunsThatGoWrong(t *testing.T) {
	t.Parallel()
	id := running().ID
	long := "the server said \x1b[2J " + strings.Repeat("long ", 40)
	for name, c := range map[string]struct {
		event task.Event
		live  bool
		want  string
	}{
		"failed": {
			task.Event{State: task.Failed, Attempts: 2, Fault: fault.HTTPStatus, Message: "503\nplease wait", RunAt: now().Add(7 * time.Second)}, false,
			`feed-pull:running: run 2 failed: http_status: 503\nplease wait; it will be tried again in 7.0 s`,
		},
		"due":         {task.Event{State: task.Failed, Attempts: 1, Fault: fault.Failed, RunAt: now()}, false, "run 1 failed: failed; it will be tried again now"},
		"crash":       {task.Event{State: task.Waiting, Attempts: 1, Fault: fault.Crash, Message: "exit code 3"}, false, "its worker died in run 1: exit code 3; it goes back into the queue at once"},
		"memory":      {task.Event{State: task.Waiting, Attempts: 1, Fault: fault.Memory, Message: "300 MiB"}, false, "its worker was killed in run 1 for its memory: 300 MiB; it goes back"},
		"timeout":     {task.Event{State: task.Waiting, Attempts: 3, Fault: fault.Timeout, Message: "it ran for 2m"}, false, "run 3 ran out of time: it ran for 2m; it goes back"},
		"interrupted": {task.Event{State: task.Waiting, Attempts: 1, Fault: fault.Interrupted}, false, "run 1 was interrupted; it goes back into the queue, and that costs it nothing"},
		"lost":        {task.Event{State: task.Waiting, Attempts: 1, Fault: fault.Lost}, false, "its manager died in run 1; it goes back"},
		"another":     {task.Event{State: task.Waiting, Attempts: 1, Fault: fault.Protocol}, false, "run 1 was broken off: protocol; it goes back"},
		"returned":    {task.Event{State: task.Waiting, Attempts: 1}, false, "feed-pull:running: back in the queue\n"},
		"long":        {task.Event{State: task.Failed, Attempts: 1, Fault: fault.Failed, Message: long}, false, "long long ; it will be tried again"},
		"on a terminal": {
			task.Event{State: task.Failed, Attempts: 1, Fault: fault.Failed, Message: long}, true,
			"\r\x1b[Krun 1 failed: failed: the server said \\x1b[2J long long long long…; it will be tried again\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			con := newConsole(completed())
			c.event.ID = id
			con.tasks.events, con.live, con.width = []client.Update{{ID: id, Event: &c.event}}, c.live, 90
			if _, _, errs := con.run(t.Context(), "wait", "feed-pull:done"); !strings.Contains(errs, c.want) {
				t.Errorf("got %q, want %q", errs, c.want)
			}
		})
	}
}

// What went wrong before the subscription could hear of it is said once.
func TestPastOfATask(t *testing.T) {
	t.Parallel()
	failed, again := running(), running()
	failed.State, failed.Fault, failed.RunAt, failed.Counters.Failures = task.Failed, fault.New(fault.Unreachable, "no route"), now().Add(7*time.Second), 1
	again.Attempts, again.Fault, again.Counters.Kills = 2, fault.New(fault.Crash, "exit code 3"), 1
	late := client.Update{ID: failed.ID, Event: &task.Event{ID: failed.ID, State: task.Failed, Attempts: 1, Fault: fault.Unreachable, Message: "no route"}}
	for name, c := range map[string]struct {
		task   *task.Task
		events []client.Update
		want   string
	}{
		"failed":            {failed, nil, "run 1 failed: unreachable: no route; it will be tried again in 7.0 s"},
		"failed, and heard": {failed, []client.Update{late}, "run 1 failed: unreachable: no route; it will be tried again"},
		"runs again":        {again, nil, "runs so far: 2 (1 killed): the last failure was crash: exit code 3"},
		"nothing":           {running(), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			con := newConsole(c.task)
			con.tasks.events = c.events
			code, _, errs := con.run(t.Context(), "wait", "feed-pull:running", "--timeout", "500ms")
			lines := strings.Count(errs, "\n")
			if code != command.TimeRanOut || !strings.Contains(errs, c.want) || (c.want == "") != (lines == 1) || lines > 2 {
				t.Errorf("exit %d, %q, want %q", code, errs, c.want)
			}
		})
	}
}

// A failure names its cause: no manager, a manager without its broker, a manager that does not answer, anything else.
func TestFailures(t *testing.T) {
	t.Parallel()
	gone := fmt.Errorf("dial unix var/drover.sock: %w", client.ErrUnavailable)
	noBroker := sampleStatus()
	noBroker.Manager.BrokerError = "connection refused"
	for name, c := range map[string]struct {
		tasks   error
		control fakeControl
		line    string
		code    command.Code
		says    string
	}{
		"no manager":          {gone, fakeControl{err: gone}, "task a:b", command.NoManager, "no manager answers at var/drover.sock"},
		"no manager, status":  {nil, fakeControl{err: connect.NewError(connect.CodeUnavailable, errors.New("refused"))}, "status", command.NoManager, "start one with droverd"},
		"no broker":           {gone, fakeControl{status: noBroker}, "submit q", command.Failed, "its broker does not: connection refused"},
		"no broker, wait":     {gone, fakeControl{status: noBroker}, "wait a:b", command.Failed, "its broker does not"},
		"no answer":           {nil, fakeControl{err: context.DeadlineExceeded}, "status", command.TimeRanOut, "did not answer in time"},
		"something else":      {errors.New("boom\x1b"), fakeControl{}, "task a:b", command.Failed, `boom\x1b`},
		"payload":             {fmt.Errorf("%w: url: is missing", client.ErrInvalidPayload), fakeControl{}, "submit q", command.Usage, "url: is missing"},
		"queue, none to name": {client.ErrUnknownQueue, fakeControl{err: gone}, "submit q", command.Usage, "no such queue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			con := newConsole()
			con.tasks.err, con.control = c.tasks, c.control
			code, out, errs := con.run(t.Context(), strings.Fields(c.line)...)
			if code != c.code || out != "" || !strings.Contains(errs, c.says) {
				t.Errorf("exit %d, %q, %q; want %d and %q", code, out, errs, c.code, c.says)
			}
			code, out, _ = con.run(t.Context(), append(strings.Fields(c.line), "--json")...)
			if code != c.code || !strings.HasPrefix(out, `{"error":{"kind":"`) {
				t.Errorf("with --json: exit %d, %q", code, out)
			}
		})
	}
}

// A payload that breaks the schema is a wrong command line, and the message names the field.
func TestInvalidPayload(t *testing.T) {
	t.Parallel()
	c := newConsole()
	c.tasks.schema = "colour"
	code, _, errs := c.run(t.Context(), "submit", "feed-pull", "colour=red")
	if code != command.Usage || !strings.Contains(errs, "invalid payload: colour: is not allowed") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// Completion offers commands, flags, queues and the beginnings of task IDs.
func TestComplete(t *testing.T) {
	t.Parallel()
	tree := command.New()
	env := newConsole().env(nil, nil, nil)
	for line, want := range map[string][]string{
		"":                 {"cancel", "completion", "diff", "doctor", "drop", "exit", "explain", "export", "help", "kill", "locks", "logs", "managers", "pause", "plugin", "plugins", "queues", "reload", "restart", "resume", "retry", "save", "schedule", "schedules", "set", "settings", "stacks", "status", "submit", "task", "tasks", "top", "undo", "unset", "version", "wait", "watch", "why", "workers"},
		"s":                {"save", "schedule", "schedules", "set", "settings", "stacks", "status", "submit"},
		"submit ":          {"feed-pull", "misbehave"},
		"submit f":         {"feed-pull"},
		"submit q --wa":    {"--wait"},
		"workers m":        {"misbehave"},
		"wait f":           {"feed-pull:"},
		"wait f:1 f":       {"feed-pull:"},
		"task f:":          nil,
		"retry feed-pull:": {"feed-pull:dead"}, "why feed-pull:d": {"feed-pull:dead"}, "cancel feed-pull:": nil, "drop feed-pull:a feed-pull:": {"feed-pull:dead"},
		"set feed-pull.priority=": {"feed-pull.priority=system", "feed-pull.priority=user"}, "completion ": {"bash", "fish", "zsh"}, "--so": {"--socket"}, "__": nil,
		"help que":      {"queues"},
		"status ":       nil,
		"nonsense x":    nil,
		"submit q a":    nil,
		"version --js ": nil,
	} {
		if got := tree.Complete(t.Context(), env, strings.Split(line, " ")); !slices.Equal(got, want) {
			t.Errorf("complete %q: %q, want %q", line, got, want)
		}
	}
	env.Control = fakeControl{err: client.ErrUnavailable}
	if got := tree.Complete(t.Context(), env, []string{"submit", ""}); len(got) != 0 {
		t.Errorf("without a manager: %q", got)
	}
}

// Words are completed however they are: what is offered goes on from the last of them.
func FuzzComplete(f *testing.F) {
	for _, seed := range []string{"", "s", "set feed-pull.p", "retry feed-pull:", "tasks q --state=", "--socket x pause ", "drop --dead ", "-- -", "submit q --wait="} {
		f.Add(seed)
	}
	tree, env := command.New(), newConsole().env(nil, nil, nil)
	f.Fuzz(func(t *testing.T, line string) {
		_, words := command.TakeCommon(strings.Split(line, " "))
		tree.WantsFile(words)
		for _, offer := range tree.Complete(t.Context(), env, words) {
			if last := words[len(words)-1]; !strings.HasPrefix(offer, last) {
				t.Errorf("%q behind %q", offer, words)
			}
		}
	})
}

// The flags before a command and the socket are taken out of what is being typed, the last word never.
func TestTakeCommon(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"": "|", "--json": "|--json", "--json queues": "|queues", "--socket a pause ": "a|pause ", "--socket=a pause x": "a|pause x", "--socket a": "|--socket a",
		"pause --socket a q": "a|pause q", "pause --socket ": "|pause --socket ", "tasks --json q": "|tasks --json q", "--socket": "|--socket", "--socket a ": "a|",
	} {
		socket, words := command.TakeCommon(strings.Split(line, " "))
		if got := socket + "|" + strings.Join(words, " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// A shell completes files where a command or a flag takes one, and only there.
func TestWantsFile(t *testing.T) {
	t.Parallel()
	tree := command.New()
	for line, want := range map[string]bool{
		"": false, "x": false, "status ": false, "submit ": false, "submit q ": true, "submit q a=@": true, "submit q --in ": false, "--socket ": true, "status --socket ": true,
		"status --socket=": true, "plugin test x": true, "plugin new --dir ": true, "pause ": false, "set ": false,
	} {
		if got := tree.WantsFile(strings.Split(line, " ")); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// Every command has a summary, an example that parses, and help that fits 130 columns.
func TestTree(t *testing.T) {
	t.Parallel()
	tree := command.New()
	for _, name := range tree.Complete(t.Context(), &command.Env{}, nil) {
		cmd := tree.Find(name)
		if cmd.Summary == "" || len(cmd.Examples) == 0 || cmd.Run == nil {
			t.Errorf("%s lacks a summary, an example or what it does", name)
		}
		for line := range strings.Lines(cmd.Help) {
			if len(line) > 130 {
				t.Errorf("%s: a line of help is too long: %q", name, line)
			}
		}
		for _, example := range cmd.Examples {
			if strings.ContainsAny(example.Line, "'|$") {
				continue // needs a shell
			}
			if _, err := tree.Parse(strings.Fields(example.Line)[1:]); err != nil {
				t.Errorf("%s: %v", example.Line, err)
			}
		}
	}
}

var _ command.Control = fakeControl{status: &apiv1.StatusResponse{}}
