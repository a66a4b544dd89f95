package reaper_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
)

// patience bounds every wait of these tests; none of them is decided by it unless something is broken.
const patience = 30 * time.Second

// managerArgument makes the test binary a small manager.
const managerArgument = "manage"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case reaper.Argument:
			os.Exit(reaper.Reap(os.Args[2:], os.Stdin, os.Stderr))
		case managerArgument:
			os.Exit(manage(os.Args[2]))
		}
	}
	goleak.VerifyTestMain(m)
}

// family are the processes of a worker, by the way that they went.
func family() map[string]func(dir string) *exec.Cmd {
	const long = "600"
	sleeper := func(dir string, attr syscall.SysProcAttr) *exec.Cmd {
		cmd := exec.Command("sleep", long)
		cmd.Env = []string{reaper.Variable + "=" + filepath.Join(dir, "plugin-dir1")}
		cmd.SysProcAttr = &attr
		return cmd
	}
	return map[string]func(dir string) *exec.Cmd{
		"in its group": func(dir string) *exec.Cmd { return sleeper(dir, syscall.SysProcAttr{Setpgid: true}) },
		"in a session": func(dir string) *exec.Cmd { return sleeper(dir, syscall.SysProcAttr{Setsid: true}) },
		"of go-plugin's": func(dir string) *exec.Cmd {
			cmd := sleeper(dir, syscall.SysProcAttr{Setsid: true})
			cmd.Env = []string{"A=B", "PLUGIN_UNIX_SOCKET_DIR=" + filepath.Join(dir, "plugin-dir2")}
			return cmd
		},
		"without environment, noted": func(dir string) *exec.Cmd {
			cmd := sleeper(dir, syscall.SysProcAttr{Setpgid: true})
			cmd.Env = []string{}
			return cmd
		},
	}
}

// manage is a manager: it keeps a reaper and has the family of a worker. It prints "name pid" for each of them and for the reaper, and
// waits for SIGTERM, or for SIGINT: then it says that nothing of the family is left.
func manage(dir string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	keeper := reaper.NewKeeper(dir, []string{"/proc/self/exe"}, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ended := make(chan error, 1)
	go func() { ended <- keeper.Run(ctx) }()
	go func() {
		if <-told == syscall.SIGINT {
			keeper.Dismiss()
		}
		cancel()
	}()
	<-keeper.Tried()
	for name, member := range family() {
		cmd := member(dir)
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		go func() { _ = cmd.Wait() }()
		if strings.HasSuffix(name, "noted") {
			p, err := reaper.Look(cmd.Process.Pid)
			if err == nil {
				err = reaper.Note(dir, p)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		fmt.Fprintln(os.Stdout, cmd.Process.Pid, name)
	}
	fmt.Fprintln(os.Stdout, keeper.PID(), "reaper")
	if err := <-ended; err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// alive is false for a zombie: whoever has to collect it may be another process.
func alive(pid int) bool {
	p, err := reaper.Look(pid)
	return err == nil && !p.Gone()
}

// eventually polls for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
