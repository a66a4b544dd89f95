package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	startTime = 20 * time.Second
	stopTime  = 20 * time.Second
)

// managerConfig serves one queue with the worker that does what it is told.
const managerConfig = `
manager: {name: session, state_dir: %[1]s, socket: %[1]s/drover.sock}
redis: {embedded: true}
plugins: {misbehave: {command: [%[2]s]}}
queues: {misbehave: {plugin: misbehave, max_workers: 2, retry_backoff: 100ms, max_failures: 2}}
`

// Whole sessions with the real programs say and return what the help promises.
func TestSessions(t *testing.T) {
	t.Parallel()
	runSessions(t, "sessions")
}

// So does a session that changes how the manager works, which has one for itself.
func TestOperate(t *testing.T) {
	t.Parallel()
	runSessions(t, "operate")
}

// And so does one about what is submitted by itself.
func TestSchedules(t *testing.T) {
	t.Parallel()
	runSessions(t, "schedules", `schedules:
  tick: {queue: misbehave, every: 1s, payload: {do: return}}
  yearly: {queue: misbehave, cron: "@yearly", time_zone: Europe/Berlin, payload: {do: return}}
`)
}

// runSessions runs the scripts in a folder of testdata against one manager, to whose configuration more may be added.
func runSessions(t *testing.T, folder string, more ...string) {
	t.Helper()
	programs := testenv.BuildBinaries(t, "./orchestrator/cmd/droverd", "./console/cmd/drover", "./plugins/sdk/sdktest/misbehave")
	dir := testenv.ShortDir(t)
	socket := startManager(t, programs[0], programs[2], dir, more...)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", folder),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(programs[1])+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("DROVER_SOCKET", socket)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "until": until, "remember": remember, "grab": grab},
	})
}

// exits runs a command and checks its exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), code, want)
	}
}

// until runs a command again and again until its output matches: until PATTERN COMMAND...
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND...")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	for deadline := time.Now().Add(startTime); time.Now().Before(deadline); {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("%s never printed %s", strings.Join(args[1:], " "), pattern)
}

// remember puts the last output into a variable: remember NAME
func remember(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: remember NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// grab puts what a group of a pattern matched in the last output into a variable: grab NAME PATTERN
func grab(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: grab NAME PATTERN")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	found := pattern.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("%s matches nothing, or has no group", pattern)
	}
	ts.Setenv(args[0], found[1])
}

// startManager starts a manager that is stopped, cleanly, when the test ends, and returns its socket.
func startManager(t *testing.T, droverd, worker, dir string, more ...string) string {
	t.Helper()
	config, socket := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "drover.sock")
	if err := os.WriteFile(config, fmt.Appendf(nil, managerConfig+strings.Join(more, ""), dir, worker), 0o600); err != nil {
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
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the manager's end: %v", err)
			}
		case <-time.After(stopTime):
			_ = cmd.Process.Kill() // as above
			t.Errorf("the manager did not stop in time: %v", <-ended)
		}
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the manager's log:\n%s", text)
		}
		_ = log.Close() // read already
	})
	awaitManager(t, socket, ended)
	return socket
}

func awaitManager(t *testing.T, socket string, ended <-chan error) {
	t.Helper()
	control, err := client.Control("unix:" + socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = control.Close() }) // never fails
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		s, err := control.Status(ctx, &apiv1.StatusRequest{})
		if err == nil && s.GetManager().GetState() == "running" {
			return
		}
		select {
		case <-poll.C:
		case err := <-ended:
			t.Fatalf("the manager ended while starting: %v", err)
		case <-ctx.Done():
			t.Fatalf("the manager is not up: %v, %v", s, err)
		}
	}
}
