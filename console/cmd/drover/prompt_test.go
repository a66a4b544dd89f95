package main_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// seat is a terminal with a console on it.
type seat struct {
	t     *testing.T
	cmd   *exec.Cmd
	pty   *os.File
	ended chan error

	mu   sync.Mutex
	text []byte // all that the console wrote
	from int    // where see begins to look
}

// sit starts the console on a terminal of its own.
func sit(t *testing.T, drover, socket, state string, words ...string) *seat {
	t.Helper()
	cmd := exec.Command(drover, words...)
	cmd.Env = []string{"DROVER_SOCKET=" + socket, "XDG_STATE_HOME=" + state, "TERM=xterm", "NO_COLOR=1"}
	return seated(t, cmd)
}

// seated starts a program on a terminal of its own.
func seated(t *testing.T, cmd *exec.Cmd) *seat {
	t.Helper()
	s := &seat{t: t, cmd: cmd, ended: make(chan error, 1)}
	terminal, err := pty.StartWithSize(s.cmd, &pty.Winsize{Cols: 90, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	s.pty = terminal
	read := make(chan struct{})
	go func() {
		defer close(read)
		chunk := make([]byte, 4096)
		for {
			n, err := terminal.Read(chunk)
			s.mu.Lock()
			s.text = append(s.text, chunk[:n]...)
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it has ended, unless the test failed
		_ = terminal.Close()     // nobody is there any more
		<-read
	})
	return s
}

// keys types.
func (s *seat) keys(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.pty, text); err != nil {
		s.t.Fatal(err)
	}
}

// see waits until the console has written what matches, behind what was seen before.
func (s *seat) see(pattern string) {
	s.t.Helper()
	if s.sees(pattern, startTime) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Fatalf("never seen: %s; on the terminal:\n%q", pattern, s.text[s.from:])
}

// sees reports whether the console writes what matches in some time.
func (s *seat) sees(pattern string, within time.Duration) bool {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		s.mu.Lock()
		at := re.FindIndex(s.text[s.from:])
		if at != nil {
			s.from += at[1]
		}
		s.mu.Unlock()
		if at != nil {
			return true
		}
		<-time.After(5 * time.Millisecond)
	}
	return false
}

// seen checks how often the console has written what matches.
func (s *seat) seen(pattern string, want int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(regexp.MustCompile(pattern).FindAllIndex(s.text, -1)); n != want {
		s.t.Errorf("%s was written %d times, not %d:\n%q", pattern, n, want, s.text)
	}
}

// leaves waits for the console's end and checks its exit code.
func (s *seat) leaves(want int) {
	s.t.Helper()
	select {
	case err := <-s.ended:
		code := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		if code != want {
			s.t.Errorf("exit code %d, want %d", code, want)
		}
	case <-time.After(stopTime):
		s.t.Error("the console does not end")
	}
}

// prompts starts a manager of its own, for a test that stops it.
func prompts(t *testing.T) (drover, droverd, worker, dir string) {
	t.Helper()
	programs := testenv.BuildBinaries(t, "./orchestrator/cmd/droverd", "./console/cmd/drover", "./plugins/sdk/sdktest/misbehave")
	return programs[1], programs[0], programs[2], testenv.ShortDir(t)
}

// At the prompt a person types, completes, interrupts, clears and leaves, and finds the lines again the next time.
func TestPrompt(t *testing.T) {
	t.Parallel()
	drover, droverd, worker, dir := prompts(t)
	socket := startManager(t, droverd, worker, dir)
	s := sit(t, drover, socket, dir)
	s.see(`session> `)
	s.keys("sta\t")
	s.see(`stacks +status`)
	s.keys("\tt\t\r") // what can follow is said once, however often it is asked
	s.see(`Manager +session, running`)
	s.seen(`stacks +status`, 1)
	s.see(`session> `)
	s.keys("submit mis\tdo=return value={\"a\": 1} --wait\r")
	s.see(`(?s)submit misbehave do=return.*State +completed.*"a": 1`)
	s.see(`session> `)
	s.keys("submit misbehave do=sleep ms=4000 --wait\r")
	s.see(`misbehave:[a-z2-7]+`)
	s.keys("\x03") // Ctrl-C ends the wait, not the console
	s.see(`interrupted`)
	s.see(`session> `)
	s.keys("drop misbehave:x --yes\x03") // and at the prompt clears the line
	s.see(`\^C`)
	s.see(`session> `)
	s.keys("queues; nonsense; version\r") // the first that fails ends the line
	s.see(`(?s)QUEUE.*no such command: "nonsense"`)
	s.see(`session> `)
	s.keys("submit misbehave do=permanent note=x --wait\r")
	s.see(`State +dead`)
	s.see(`session!> `) // dead letters
	s.keys("kill 1\r")
	s.see(`(?s)Kill worker 1 .*\[y/N\] `)
	s.keys("n\r")
	s.see(`nothing was done`)
	s.see(`session!> `)
	s.keys("\x04")
	s.leaves(0)

	again := sit(t, drover, socket, dir)
	again.see(`session!> `)
	again.keys("\x1b[A\x1b[A\x1b[A")
	again.see(`queues; nonsense; version`)
	again.keys("\x03exit\r")
	again.leaves(0)
	info, err := os.Stat(filepath.Join(dir, "drover", "history"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history: %v, %v", info, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "drover", "history"))
	if err != nil || strings.Contains(string(text), "drop") {
		t.Errorf("a line that was cleared is kept: %q, %v", text, err)
	}
}

// A line that was not finished is not run when the terminal goes away or the process is told to end.
func TestUnfinishedLine(t *testing.T) {
	t.Parallel()
	drover, droverd, worker, dir := prompts(t)
	socket := startManager(t, droverd, worker, dir)
	for name, end := range map[string]syscall.Signal{"hang up": syscall.SIGHUP, "end": syscall.SIGTERM} {
		s := sit(t, drover, socket, dir)
		s.see(`session> `)
		s.keys("pause misbehave")
		s.see(`pause misbehave`)
		if err := s.cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		s.leaves(0)
		text, err := exec.Command(drover, "queues", "misbehave", "--socket", socket).CombinedOutput()
		if err != nil || !regexp.MustCompile(`State +ok`).Match(text) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// A manager that dies and comes back while a person types is told above the prompt; what was typed stays, and the next command goes
// to the new manager.
func TestManagerRestarts(t *testing.T) {
	t.Parallel()
	drover, droverd, worker, dir := prompts(t)
	config, socket := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "drover.sock")
	if err := os.WriteFile(config, fmt.Appendf(nil, managerConfig, dir, worker), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sit(t, drover, socket, dir)
	s.see(`no manager answers at`)
	s.see(`no manager!> `)
	first := exec.Command(droverd, "--config", config)
	first.Dir = dir
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	s.see(`the manager session answers`)
	s.see(`session> `)
	s.keys("vers")
	s.see(`vers`)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // killed
	s.see(`\* no manager answers at`)
	s.see(`session!> vers`)
	startManager(t, droverd, worker, dir)
	s.see(`\* the manager session answers`)
	s.see(`session> vers`)
	s.keys("ion; status\r")
	s.see(`(?s)drover .*Manager +session, running`)
	s.keys("\x04")
	s.leaves(0)
}
