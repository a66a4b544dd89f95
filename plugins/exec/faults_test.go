package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// program is a worker in some language; loop is an endless one.
type program struct{ name, program, pack, file, text, loop string }

// programs are workers that say that they are ready, read one task and then do what is put in the place of BODY.
var programs = []program{
	{"php", "php", "php-cli", "w.php", `<?php echo '{"type":"ready"}', "\n"; fgets(STDIN); BODY`, `while (true) {}`},
	{"python", "python3", "python3", "w.py", "import sys\nprint('{\"type\":\"ready\"}', flush=True)\nsys.stdin.readline()\nBODY\n", "while True: pass"},
	{"node", "node", "nodejs", "w.mjs", `console.log('{"type":"ready"}'); process.stdin.once("data", () => { BODY })`, "for (;;) {}"},
	{"sh", "sh", "dash", "w.sh", `echo '{"type":"ready"}'; read -r line; BODY`, "while :; do :; done"},
}

// faulty starts exec with a program that does body in its task.
func faulty(t *testing.T, options string, of program, body string) *process {
	t.Helper()
	needs(t, of.program, of.pack)
	path := filepath.Join(t.TempDir(), of.file)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(of.text, "BODY", body)), 0o600); err != nil {
		t.Fatal(err)
	}
	return launch(t, options, "--name", "faulty", "--", of.program, path)
}

// A program in an endless loop when its time is over ended by a signal, not because it was asked, and its task's fault says so.
func TestEndlessLoop(t *testing.T) {
	t.Parallel()
	for _, test := range programs {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := faulty(t, `{"start_timeout": "30s", "cancel_grace": "200ms"}`, test, test.loop)
			p.begin(1, `{}`)
			p.send(&workerv1.Instruction{Kind: &workerv1.Instruction_Cancel{Cancel: &workerv1.Cancel{Run: 1, Reason: "timeout"}}})
			f := p.outcome().GetFault()
			want := "did not heed the request to end within cancel_grace (200ms), and was ended by the signal terminated"
			if fault.Kind(f.GetKind()) != fault.Timeout || !strings.Contains(f.GetMessage(), want) {
				t.Errorf("got %v, want %q", f, want)
			}
		})
	}
}

// outcome waits for the outcome of the task that was begun.
func (p *process) outcome() *workerv1.Outcome {
	p.t.Helper()
	for {
		response, err := p.stream.Recv()
		if err != nil {
			p.t.Fatalf("read reports: %v\n%s", err, p.stderr)
		}
		for _, report := range response.GetReports() {
			if o := report.GetOutcome(); o != nil {
				return o
			}
		}
	}
}

// What a program prints on its standard output that is no message stands in its output and behind its fault: its last words
// before it leaves, and an answer glued to what was printed before it, which is not read, with a warning that says why.
func TestStrayOutput(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ index, body, bye string }{
		{"php", `echo '}{ garbage'; echo '{"type":"result","run":1,"result":1}', "\n"; fgets(STDIN);`, `echo "bye\n"; exit(4);`},
		{"python", `print('}{ garbage', end=''); print('{"type":"result","run":1,"result":1}', flush=True); sys.stdin.readline()`, `print("bye", flush=True); sys.exit(4)`},
		{"node", `console.log('}{ garbage{"type":"result","run":1,"result":1}'); process.stdin.once("data", () => {})`, `console.log("bye"); process.exitCode = 4; process.stdin.destroy()`},
		{"sh", `printf '}{ garbage'; echo '{"type":"result","run":1,"result":1}'; read -r line`, `echo bye; exit 4`},
	} {
		t.Run(test.index, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(programs, func(p program) bool { return p.name == test.index })
			p := faulty(t, `{"start_timeout": "30s", "cancel_grace": "200ms"}`, programs[i], test.body)
			p.begin(1, `{}`)
			eventually(t, p, "exec: a message that does not begin its line is not read")
			if !strings.Contains(p.stderr.String(), `}{ garbage{"type":"result"`) {
				t.Errorf("its output: %q", p.stderr)
			}
			p.send(&workerv1.Instruction{Kind: &workerv1.Instruction_Cancel{Cancel: &workerv1.Cancel{Run: 1, Reason: "timeout"}}})
			if f := p.outcome().GetFault(); !strings.Contains(f.GetDetail(), "exec: a message that does not begin its line") {
				t.Errorf("the fault of a glued answer: %v", f)
			}
			p = faulty(t, `{"start_timeout": "30s"}`, programs[i], test.bye)
			o, _ := p.run(1, `{}`, false)
			if f := o.GetFault(); fault.Kind(f.GetKind()) != fault.Crash || !strings.Contains(f.GetMessage(), "exit code 4 while it ran the task: bye") {
				t.Errorf("got %v", f)
			}
		})
	}
}

// eventually waits until the worker has written something to its standard error.
func eventually(t *testing.T, p *process, text string) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer late.Stop()
	for !strings.Contains(p.stderr.String(), text) {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("waited in vain for %q in %q", text, p.stderr)
		}
	}
}
