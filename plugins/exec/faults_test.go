package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// programs are workers that say that they are ready, read one task and then do what is put in the place of BODY.
var programs = []struct{ name, program, pack, file, text, loop string }{
	{"php", "php", "php-cli", "w.php", `<?php echo '{"type":"ready"}', "\n"; fgets(STDIN); BODY`, `while (true) {}`},
	{"python", "python3", "python3", "w.py", "import sys\nprint('{\"type\":\"ready\"}', flush=True)\nsys.stdin.readline()\nBODY\n", "while True: pass"},
	{"node", "node", "nodejs", "w.mjs", `console.log('{"type":"ready"}'); process.stdin.once("data", () => { BODY })`, "for (;;) {}"},
	{"sh", "sh", "dash", "w.sh", `echo '{"type":"ready"}'; read -r line; BODY`, "while :; do :; done"},
}

// faulty starts exec with a program that does what is said in its task.
func faulty(t *testing.T, options, program, pack, file, text string) *process {
	t.Helper()
	needs(t, program, pack)
	path := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return launch(t, options, "--name", "faulty", "--", program, path)
}

// A program in an endless loop when its time is over ended by a signal, not because it was asked, and its task's fault says so.
func TestEndlessLoop(t *testing.T) {
	t.Parallel()
	for _, test := range programs {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := faulty(t, `{"start_timeout": "30s", "cancel_grace": "200ms"}`, test.program, test.pack, test.file,
				strings.ReplaceAll(test.text, "BODY", test.loop))
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
