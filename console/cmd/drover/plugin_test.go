package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// made is what `plugin new --json` says.
type made struct {
	YAML string   `json:"yaml"`
	Next []string `json:"next"`
}

// A newcomer's way, in every language, by what the console itself says to type: a new worker passes the test of workers,
// and a manager with the lines that were to be pasted runs a task of it. None of it needs a network.
func TestNewWorkers(t *testing.T) { //nolint:tparallel // the manager comes after all of the first subtests
	t.Parallel()
	for _, program := range [][2]string{{"python3", "python3"}, {"php", "php-cli"}, {"node", "nodejs"}} {
		if _, err := exec.LookPath(program[0]); err != nil {
			t.Fatalf("%s is not installed: run `make test`, which installs what the tests need, or install the package %s", program[0], program[1])
		}
	}
	dir := testenv.ShortDir(t)
	bin := install(t, dir)
	in := &place{dir: dir, env: append(os.Environ(),
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "DROVER_SOCKET="+filepath.Join(dir, "drover.sock"),
		"GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")}
	langs := []string{"go", "python", "php", "node", "sh"}
	workers := make([]made, len(langs))
	t.Run("new and test", func(t *testing.T) {
		for i, lang := range langs {
			t.Run(lang, func(t *testing.T) {
				t.Parallel()
				line := "drover plugin new greet-" + lang + " --json --lang " + lang
				if lang == "go" {
					line += " --sdk '" + testenv.ModuleRoot(t) + "'"
				}
				if err := json.Unmarshal(in.sh(t, line), &workers[i]); err != nil {
					t.Fatal(err)
				}
				in.sh(t, workers[i].Next[0])
				if lang == "go" {
					in.sh(t, "cd greet-go && go test ./...")
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	startWith(t, filepath.Join(bin, "droverd"), dir, workers)
	for i, lang := range langs {
		if out := in.sh(t, workers[i].Next[1]); !bytes.Contains(out, []byte("hello Ada")) {
			t.Errorf("a task of the worker in %s: %s", lang, out)
		}
	}
	sameEnvironment(t, in)
}

// sameEnvironment checks that a worker under test finds the variables that it finds under a manager.
func sameEnvironment(t *testing.T, in *place) {
	t.Helper()
	var task struct {
		Result string `json:"result"`
	}
	if err := json.Unmarshal(in.sh(t, "drover submit environment --wait --json"), &task); err != nil {
		t.Fatal(err)
	}
	var report struct {
		Checks []struct{ Check, Seen string }
	}
	if err := json.Unmarshal(in.sh(t, "drover plugin test --json --exec --once -- sh -c "+printNames), &report); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(report.Checks, func(c struct{ Check, Seen string }) bool { return c.Check == "task" })
	if at < 0 {
		t.Fatalf("no check of a task: %+v", report)
	}
	_, tested, _ := strings.Cut(report.Checks[at].Seen, `result "`)
	tested, _, _ = strings.Cut(tested, `"`)
	if got := strings.Fields(tested); !slices.Equal(got, strings.Fields(task.Result)) || !slices.Contains(got, "PATH") {
		t.Errorf("under test a worker finds\n%s\nunder a manager\n%s", got, task.Result)
	}
}

// printNames prints the names of the variables, sorted, in one line, without those by which a manager speaks to its workers.
const printNames = `'env | grep -v -e ^DROVER_ -e ^PLUGIN_ | cut -d= -f1 | LC_ALL=C sort | tr "\n" " "'`

// place is where commands are typed.
type place struct {
	dir string
	env []string
}

// sh runs a line as a person types it and returns its output.
func (p *place) sh(t *testing.T, line string) []byte {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir, cmd.Env = p.dir, p.env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", line, err, out, &errs)
	}
	return out
}

// install lays the programs out as `make build` does and returns their directory.
func install(t *testing.T, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "bin")
	built := testenv.BuildBinaries(t, "./orchestrator/cmd/droverd", "./console/cmd/drover", "./plugins/exec")
	for i, name := range []string{"droverd", "drover", "plugins/exec"} {
		text, err := os.ReadFile(built[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(bin, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, name), text, 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return bin
}

// startWith starts a manager with the new workers, which is stopped, cleanly, when the test ends.
func startWith(t *testing.T, droverd, dir string, workers []made) {
	t.Helper()
	plugins, queues := "", ""
	for _, w := range workers {
		plugin, queue, found := strings.Cut(strings.TrimPrefix(w.YAML, "plugins:\n"), "queues:\n")
		if !found {
			t.Fatalf("the YAML %q has no queue", w.YAML)
		}
		plugins, queues = plugins+plugin, queues+queue
	}
	config, socket := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "drover.sock")
	text := fmt.Sprintf("manager: {name: new, state_dir: %s/state, socket: %s}\nredis: {embedded: true}\nplugins:\n%s  environment:\n    command: [%s/bin/plugins/exec, --name, environment, --once, --, sh, -c, %s]\nqueues:\n%s  environment: {plugin: environment}\n",
		dir, socket, plugins, dir, printNames, queues)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(droverd, "--config", config)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		late := time.AfterFunc(stopTime, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager's end: %v", err)
		}
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the configuration:\n%s\nthe manager's log:\n%s", config, text)
		}
		_ = log.Close() // read already
	})
	awaitManager(t, socket, ended)
}
