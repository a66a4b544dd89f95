package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/console/internal/command"
)

// What is wrong with the command line is said before anything is written or started.
func TestPluginUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"plugin":                              "needs more words",
		"plugin nwe x":                        "new",
		"plugin new":                          "needs one name",
		"plugin new a b":                      "needs one name",
		"plugin new A":                        `did you mean "a"?`,
		"plugin new a --lang pyton":           "python",
		"plugin new a --slow {}":              "takes no --slow",
		"plugin test":                         "needs a command",
		"plugin test --lang go ./a":           "takes no --lang",
		"plugin test --once ./a":              "--once is for --exec",
		"plugin test --payload 7 ./a":         "is not a JSON object",
		"plugin test --payload @absent ./a":   "no such file",
		"plugin test --exec true":             "--exec=PATH",
		"plugin test --timeout soon /bin/sh":  "not a length of time",
		"plugin test sh -c true":              "put -- before",
		"plugin test --schema s.json /bin/sh": "--schema is for --exec",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			code, out, errs := newConsole().run(t.Context(), strings.Fields(line)...)
			if code != command.Usage || !strings.Contains(errs, want) || out != "" {
				t.Errorf("exit %d, %q, %q; want %q", code, out, errs, want)
			}
		})
	}
}

// A name that is none is answered with one that is, and not with a language.
func TestPluginName(t *testing.T) {
	t.Parallel()
	code, _, errs := newConsole().run(t.Context(), "plugin", "new", "Bad Name")
	if code != command.Usage || !strings.Contains(errs, `did you mean "bad-name"?`) || strings.Contains(errs, `"go"`) {
		t.Errorf("exit %d, %q", code, errs)
	}
	if _, _, errs := newConsole().run(t.Context(), "plugin", "new", "../x"); strings.Contains(errs, "did you mean") {
		t.Errorf("got %q", errs)
	}
}

// A new worker's directory is made once; the second time nothing is overwritten, and the exit code says so.
func TestPluginNew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "thumbs")
	code, out, errs := newConsole().run(t.Context(), "plugin", "new", "thumbs", "--lang", "sh", "--dir", dir, "--exec=/opt/exec")
	for _, want := range []string{"worker.sh", "drover plugin test", "command: [/opt/exec, --name, thumbs", "drover submit thumbs"} {
		if code != command.Done || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q not in:\n%s%s", code, want, out, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "worker.sh")); err != nil {
		t.Error(err)
	}
	code, out, errs = newConsole().run(t.Context(), "plugin", "new", "thumbs", "--lang", "sh", "--dir", dir, "--json")
	if code != command.Failed || !strings.Contains(out, `"kind":"not_written"`) || !strings.Contains(errs, "not empty") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// A program that is no worker fails the test, for a person and for a program, and the report hides nothing.
func TestPluginTestFails(t *testing.T) {
	t.Parallel()
	code, out, _ := newConsole().run(t.Context(), "plugin", "test", "--", "sh", "-c", "printf 'hello \\033[2J\\n'")
	for _, want := range []string{"FAIL        handshake", "seen: the first line", "do: ", "not tested  drain", "0 passed, 1 failed, 14 not tested"} {
		if code != command.Failed || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q not in:\n%s", code, want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("a hostile byte reached the terminal: %q", out)
	}
	code, out, _ = newConsole().run(t.Context(), "plugin", "test", "--json", "--", "sh", "-c", "exit 3")
	var report struct {
		Command        []string
		Passed, Failed int
		NotTested      int `json:"not_tested"`
		Checks         []struct{ Check, State, Expected, Seen, Advice string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code != command.Failed || report.Failed != 1 || report.Passed != 0 || report.NotTested != len(report.Checks)-1 || len(report.Command) != 3 {
		t.Errorf("exit %d, %+v", code, report)
	}
	if first := report.Checks[0]; !strings.Contains(first.Advice, "drover plugin test --exec [--schema FILE] sh -c exit 3") {
		t.Errorf("no way to test a script in %q", first.Advice)
	}
	if first := report.Checks[0]; first.Check != "handshake" || first.State != "fail" || !strings.Contains(first.Seen, "exit code 3") || first.Advice == "" {
		t.Errorf("got %+v", first)
	}
}
