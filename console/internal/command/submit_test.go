package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// The words behind the queue become the payload that they say, and nothing is guessed where they say nothing sound.
func TestPayload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words []string
		want  string // the payload; or, with "!" before it, part of the message of usage
	}{
		"nothing":            {nil, `{}`},
		"JSON":               {[]string{` {"url":"x","n":1.50}`}, `{"url":"x","n":1.50}`},
		"strings":            {[]string{"url=http://h/?a=b", "empty="}, `{"empty":"","url":"http://h/?a=b"}`},
		"JSON values":        {[]string{"n=1.50", "t=true", "z=null", "l=[1,2]", `o={"a":"b"}`, "big=12345678901234567890"}, `{"big":12345678901234567890,"l":[1,2],"n":1.50,"o":{"a":"b"},"t":true,"z":null}`},
		"not quite JSON":     {[]string{"a=007", "b=tru", "c=1 2", "d={x", "e=NaN"}, `{"a":"007","b":"tru","c":"1 2","d":"{x","e":"NaN"}`},
		"forced string":      {[]string{`a="5"`, `b="@x"`}, `{"a":"5","b":"@x"}`},
		"nested":             {[]string{"a.b=1", "a.c.d=x", `e\.f=2`}, `{"a":{"b":1,"c":{"d":"x"}},"e.f":2}`},
		"into an object":     {[]string{`a={"b":1}`, "a.c=2"}, `{"a":{"b":1,"c":2}}`},
		"a file":             {[]string{"doc=@feeds.opml"}, `{"doc":"\u003copml/\u003e\n"}`},
		"standard input":     {[]string{"doc=@-"}, `{"doc":"typed"}`},
		"whole from a file":  {[]string{"@whole.json"}, `{"a":1}`},
		"no file":            {[]string{"doc=@none"}, `!read the file "none"`},
		"not text":           {[]string{"doc=@binary"}, `!not UTF-8`},
		"broken JSON":        {[]string{`{"url":}`}, `!not JSON`},
		"broken file":        {[]string{"@feeds.opml"}, `!the file "feeds.opml" is not JSON`},
		"two objects":        {[]string{`{} {}`}, `!not JSON`},
		"not an object":      {[]string{"@list.json"}, `!must be one JSON object`},
		"no pair":            {[]string{"url"}, `!"url" is not key=value`},
		"no key":             {[]string{"=x"}, `!is not key=value`},
		"an empty part":      {[]string{"a..b=1"}, `!part of the key is empty`},
		"twice":              {[]string{"a=1", "a=2"}, `!"a" is given twice`},
		"through a value":    {[]string{"a=1", "a.b=2"}, `!"a" has a value that is no object`},
		"object and pairs":   {[]string{`{"a":1}`, "b=2"}, `!is not key=value`},
		"behind --":          {[]string{"--", "--a=1"}, `{"--a":1}`},
		"nothing on the in ": {[]string{"-"}, `!standard input is not JSON`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			con := newConsole()
			con.in = "typed"
			con.files = map[string]string{"feeds.opml": "<opml/>\n", "whole.json": "{\"a\":1}\n", "list.json": "[1]", "binary": "\xff\xfe"}
			code, _, errs := con.run(t.Context(), append([]string{"submit", "feed-pull"}, c.words...)...)
			if message, bad := strings.CutPrefix(c.want, "!"); bad {
				if code != command.Usage || !strings.Contains(errs, message) {
					t.Errorf("exit %d, %q; want 2 and %q", code, errs, message)
				}
				return
			}
			if code != command.Done || string(con.tasks.payload) != c.want {
				t.Errorf("exit %d, payload %s, want %s\n%s", code, con.tasks.payload, c.want, errs)
			}
		})
	}
}

// No command line makes the console panic, and every refusal has a message.
func FuzzCommandLine(f *testing.F) {
	for _, seed := range []string{"submit q a=1", "wait q:1 --timeout 1ms", "--json --socket x status", "submit q {\"a\":1} --wait=1ms", "-h", "submit q a.b=@- --in 5s", "cancel a:b -- --x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, " ")
		code, _, errs := newConsole().run(t.Context(), words...)
		if code == command.Usage && errs == "" {
			t.Errorf("%q is refused without a word", line)
		}
	})
}

// --in and --again reach the client; without --wait the ID alone stands on standard output.
func TestSubmitOptions(t *testing.T) {
	t.Parallel()
	c := newConsole()
	code, out, errs := c.run(t.Context(), "submit", "feed-pull", "--in", "10m", "--again", "url=x")
	if code != command.Done || out != "feed-pull:k1\n" || errs != "" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if want := (client.Options{NotUnique: true, Delay: 10 * time.Minute}); c.tasks.options != want {
		t.Errorf("options %+v, want %+v", c.tasks.options, want)
	}
}

// What may become of a task, and how long, reaches the client.
func TestSubmitLimits(t *testing.T) {
	t.Parallel()
	c := newConsole()
	if code, _, errs := c.run(t.Context(), "submit", "feed-pull", "--within", "10m", "--keep=1h", "--urgent"); code != command.Done {
		t.Fatalf("exit %d, %q", code, errs)
	}
	got := c.tasks.options
	if !got.Deadline.Equal(now().Add(10*time.Minute)) || got.Retention == nil || *got.Retention != time.Hour || !got.Urgent || got.Delay != 0 || got.NotUnique {
		t.Errorf("options %+v", got)
	}
}

// A record is kept for no time when that is said, and for as long as the queue says when nothing is.
func TestKeepNothing(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"--keep 0": "0s", "--keep=0s": "0s", "--keep 2m": "2m0s", "": "none", "--keep -1s": "refused", "--keep 5": "refused", "--in 0": "refused"} {
		c := newConsole()
		got := "refused"
		if code, _, _ := c.run(t.Context(), strings.Fields("submit feed-pull "+line)...); code == command.Done {
			got = "none"
			if kept := c.tasks.options.Retention; kept != nil {
				got = kept.String()
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

// A submit that joins says so beside the ID, and in JSON.
func TestSubmitJoins(t *testing.T) {
	t.Parallel()
	_, out, errs := newConsole(running()).run(t.Context(), "submit", "feed-pull")
	if out != "feed-pull:running\n" || !strings.Contains(errs, "already running") {
		t.Errorf("%q, %q", out, errs)
	}
	_, out, _ = newConsole(running()).run(t.Context(), "submit", "feed-pull", "--json")
	if want := `{"id":"feed-pull:running","queue":"feed-pull","state":"running","joined":true}` + "\n"; out != want {
		t.Errorf("%s, want %s", out, want)
	}
}

// Where a joined task is, is said in words that fit its state, and so is what is ignored.
func TestSubmitJoinsInWords(t *testing.T) {
	t.Parallel()
	in := func(state task.State, runAt time.Time, failures int) *task.Task {
		joined := running()
		joined.State, joined.RunAt, joined.Counters.Failures = state, runAt, failures
		return joined
	}
	for name, c := range map[string]struct {
		task *task.Task
		more string
		want string
	}{
		"running":      {running(), "", "The same work is already running; this is its ID. --again makes a task of its own.\n"},
		"waiting":      {in(task.Waiting, time.Time{}, 0), "", "The same work is already waiting; this"},
		"held":         {in(task.Held, time.Time{}, 0), "", "is already waiting for a free worker; this"},
		"delayed":      {in(task.Waiting, now().Add(time.Hour), 0), "--in 10m", "is already waiting and due in 1h00m, and the new --in 10m is ignored; this"},
		"failed once":  {in(task.Failed, now().Add(5*time.Second), 1), "", "The same work failed once and will be tried again in 5.0 s; this"},
		"failed twice": {in(task.Failed, time.Time{}, 2), "", "failed 2 times and will be tried again; this"},
		"waits":        {running(), "--wait=20ms", "is already running; this waits for it."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, errs := newConsole(c.task).run(t.Context(), append([]string{"submit", "feed-pull"}, strings.Fields(c.more)...)...)
			if !strings.Contains(errs, c.want) {
				t.Errorf("got %q, want %q", errs, c.want)
			}
		})
	}
}

// submit --wait --json prints exactly one object, for a good end, a bad end and a wait that is over, and the exit code tells them apart.
func TestSubmitWaitJSON(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task *task.Task
		code command.Code
		kind string // of the error
		wait string
	}{
		"completed": {completed(), command.Done, "", ""}, "dead": {dead(), command.Failed, fault.Unreachable.String(), ""},
		"running": {running(), command.TimeRanOut, "", "wait_timeout"}, "failed": {failed(), command.TimeRanOut, fault.Failed.String(), "wait_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			con := newConsole()
			con.tasks.next = c.task
			code, out, errs := con.run(t.Context(), "submit", "feed-pull", "url=x", "--wait=30ms", "--json")
			var got struct {
				ID, Queue, State string
				Wait             struct{ Kind, Message string }
				Attempts         int
				Result           json.RawMessage
				Error            struct{ Kind, Message string }
				QueuedMS         *int64 `json:"queued_ms"`
				RunMS            *int64 `json:"run_ms"`
			}
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if code != c.code || errs != "" || got.ID != c.task.ID.String() || got.Queue != "feed-pull" || got.State != c.task.State.String() ||
				got.Attempts != c.task.Attempts || got.Error.Kind != c.kind || got.Wait.Kind != c.wait || (c.wait != "") != strings.Contains(got.Wait.Message, got.ID) || got.QueuedMS == nil || got.RunMS == nil {
				t.Errorf("exit %d, %q: %s", code, errs, out)
			}
		})
	}
}

// Several tasks that go on are their IDs, once each, and one line with one command that waits for all of them.
func TestManyTimeOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		interrupt bool
		code      command.Code
		says      string
	}{
		"time":   {false, command.TimeRanOut, "drover: 2 of 3 tasks have not ended within 20ms and go on; "},
		"Ctrl-C": {true, command.Interrupted, "have not ended and go on; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			if c.interrupt {
				interrupt()
			}
			code, out, errs := newConsole(failed(), running(), completed()).
				run(ctx, "wait", "feed-pull:failed", "feed-pull:done", "feed-pull:running", "--timeout", "20ms")
			if code != c.code || !strings.HasSuffix("\n"+out, "\nfeed-pull:failed\nfeed-pull:running\n") && !c.interrupt {
				t.Errorf("exit %d, %q", code, out)
			}
			if !strings.Contains(errs, c.says+"drover wait feed-pull:failed ") || !strings.HasSuffix(errs, "feed-pull:running waits for them again\n") || strings.Count(errs, "\n") != 1 {
				t.Errorf("got %q", errs)
			}
		})
	}
}

func failed() *task.Task {
	return &task.Task{
		ID: task.ID{Queue: "feed-pull", Key: "failed"}, State: task.Failed, Attempts: 1, Counters: task.Counters{Failures: 1},
		Fault: fault.New(fault.Failed, "not today"), RunAt: now().Add(5 * time.Second),
	}
}

// A time behind --wait without an equals sign is answered with how it is written.
func TestWaitWithoutEquals(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"submit feed-pull url=x --wait 1s", "submit --wait 1s feed-pull url=x", "submit feed-pull --wait 1s"} {
		if code, _, errs := newConsole().run(t.Context(), strings.Fields(line)...); code != command.Usage || !strings.Contains(errs, "--wait=1s") {
			t.Errorf("%s: exit %d, %q", line, code, errs)
		}
	}
	if code, _, errs := newConsole().run(t.Context(), "submit", "feed-pull", "1s"); code != command.Usage || !strings.Contains(errs, "not key=value") {
		t.Errorf("without --wait: exit %d, %q", code, errs)
	}
}

// When the time runs out the ID stands alone on standard output, and what to do on standard error.
func TestWaitTimesOut(t *testing.T) {
	t.Parallel()
	code, out, errs := newConsole(running()).run(t.Context(), "submit", "feed-pull", "--wait=20ms")
	if code != command.TimeRanOut || out != "feed-pull:running\n" || !strings.Contains(errs, "drover wait feed-pull:running") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

// The manager's clock may be ahead: its word that the time ran out is as good as our own.
func TestManagerTimesOut(t *testing.T) {
	t.Parallel()
	c := newConsole(running())
	c.tasks.followErr = fmt.Errorf("follow tasks: %w", context.DeadlineExceeded)
	code, out, _ := c.run(t.Context(), "wait", "feed-pull:running", "--timeout", "1h")
	if code != command.TimeRanOut || out != "feed-pull:running\n" {
		t.Errorf("exit %d, %q", code, out)
	}
}

// Ctrl-C leaves the task alone, prints its ID and exits with 130.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	c := newConsole(running())
	c.tasks.events = []client.Update{{}}
	time.AfterFunc(30*time.Millisecond, interrupt)
	code, out, errs := c.run(ctx, "wait", "feed-pull:running")
	if code != command.Interrupted || out != "feed-pull:running\n" || !strings.Contains(errs, "goes on") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	code, out, _ = newConsole(running()).run(ctx, "wait", "feed-pull:running", "--json")
	if code != command.Interrupted || !strings.Contains(out, `"kind":"interrupted"`) {
		t.Errorf("exit %d, %q", code, out)
	}
}
