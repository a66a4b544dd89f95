package orchestrator_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// kills is how often a manager is killed, in a short test run and in a whole one.
const (
	shortKills = 3
	kills      = 20
)

// scattering returns a command of a worker that starts, besides itself, children that went away from it in every way that a reaper
// can follow. All of them have the mark on their command line.
func scattering(t *testing.T, dir, mark string) []string {
	t.Helper()
	_, misbehave, _ := programs(t)
	path := filepath.Join(dir, "scatter")
	text := fmt.Sprintf(`#!/bin/sh
sleep %[1]s &
env -i sleep %[1]s &
setsid sleep %[1]s &
setsid sh -c 'sleep %[1]s & exec sleep %[1]s' &
env -i setsid sleep %[1]s &
exec %[2]s %[1]s
`, mark, misbehave)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return []string{path}
}

// marked returns the living processes that have the mark on their command line.
func marked(mark string) []int {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is sound
	var pids []int
	for _, path := range paths {
		data, err := os.ReadFile(path) //nolint:gosec // /proc
		if err == nil && strings.Contains(string(data), mark) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func socketDirs(m *manager) []string {
	found, _ := filepath.Glob(filepath.Join(m.dir, "drover-sockets-*")) // the pattern is sound
	return found
}

// scattered waits until every child of the workers runs in a group that is noted: from then on none can be lost.
func scattered(t *testing.T, m *manager, mark string, workers int) {
	t.Helper()
	const each = 7 // processes with the mark
	eventually(t, "the workers' children run and are noted", func() error {
		pids := marked(mark)
		if len(pids) < each*workers {
			return fmt.Errorf("%d run", len(pids))
		}
		for _, pid := range pids {
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if err != nil {
				return err
			}
			if name := strings.TrimSpace(string(name)); name != "sleep" && name != "misbehave" {
				return fmt.Errorf("process %d is %s, and has yet to go away", pid, name)
			}
			group, err := syscall.Getpgid(pid)
			if err != nil {
				return err
			}
			if notes, _ := filepath.Glob(filepath.Join(m.dir, "drover-sockets-*", fmt.Sprintf("group-%d", group))); len(notes) == 0 {
				return fmt.Errorf("the group of process %d is not noted", pid)
			}
		}
		return nil
	})
}

// A manager that is killed under load leaves no process of its workers after two seconds, wherever that went, and no socket.
func TestKilledManagerLeavesNothing(t *testing.T) {
	t.Parallel()
	times := kills
	if testing.Short() {
		times = shortKills
	}
	const workers = 2
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	mark := fmt.Sprintf("%d", 1_000_000+os.Getpid())
	killMarked(t, mark)
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "min_workers: 2, max_workers: 2, memory_max: 4GiB")
	m.replaceWorker(scattering(t, m.dir, mark)...)
	c := straight(t, r)
	for range times {
		m.start()
		for n := range 20 {
			if _, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": []string{"sleep", "spin", "setsid", "fork"}[n%4], "ms": 100 * n}); err != nil {
				t.Fatal(err)
			}
		}
		scattered(t, m, mark, workers)
		m.signal(syscall.SIGKILL)
		m.wait()
		nothingLeft(t, m, mark, time.Now())
	}
}

// killMarked kills what a test that failed left.
func killMarked(t *testing.T, mark string) {
	t.Helper()
	t.Cleanup(func() {
		for _, pid := range marked(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

func nothingLeft(t *testing.T, m *manager, mark string, began time.Time) {
	t.Helper()
	eventually(t, "nothing is left", func() error {
		if pids := marked(mark); len(pids) > 0 {
			return fmt.Errorf("left are processes %v", pids)
		}
		if dirs := socketDirs(m); len(dirs) > 0 {
			return fmt.Errorf("left are %v", dirs)
		}
		return nil
	})
	took := time.Since(began)
	t.Logf("nothing was left after %s", took.Round(time.Millisecond))
	if took > 2*time.Second {
		t.Errorf("nothing was left after %s only", took)
	}
}

// reaperOf returns the process number of a manager's reaper, which takes a moment to give itself its name.
func reaperOf(t *testing.T, m *manager) (pid int) {
	t.Helper()
	eventually(t, "there is a reaper", func() error {
		found := childrenOf(t, m.process.Process.Pid, "drover-reaper")
		if len(found) != 1 {
			return fmt.Errorf("there are %d", len(found))
		}
		pid = found[0]
		return nil
	})
	return pid
}

// A manager that was killed together with its reaper leaves processes; the next one kills them and removes the sockets.
func TestNextManagerSweeps(t *testing.T) {
	t.Parallel()
	mark := fmt.Sprintf("%d", 2_000_000+os.Getpid())
	killMarked(t, mark)
	m := setUp(t, "{embedded: true}", "", "min_workers: 1, max_workers: 1, memory_max: 4GiB")
	worker := scattering(t, m.dir, mark)
	m.replaceWorker(worker...)
	m.start()
	scattered(t, m, mark, 1)
	left := socketDirs(m)
	reaper := reaperOf(t, m)
	// Stopped first, because a reaper that died alone would be replaced.
	m.signal(syscall.SIGSTOP)
	kill(t, reaper)
	m.signal(syscall.SIGKILL)
	m.wait()
	if len(marked(mark)) == 0 {
		t.Fatal("no process was left: the test shows nothing")
	}
	mine := marked(mark)
	if err := os.WriteFile(worker[0], []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	m.start()
	if pids := marked(mark); len(pids) > 0 {
		t.Errorf("of the processes %v are left %v", mine, pids)
	}
	if _, err := os.Stat(left[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
	m.stop()
	nothingLeft(t, m, mark, time.Now())
}

// A clean stop leaves neither a reaper nor a directory, and the reaper has nothing to say.
func TestCleanStopEndsTheReaper(t *testing.T) {
	t.Parallel()
	m := setUp(t, "{embedded: true}", "", "min_workers: 1").start()
	reaper := reaperOf(t, m)
	m.stop()
	if err := syscall.Kill(reaper, 0); err == nil {
		t.Error("the reaper is left")
	}
	if dirs := socketDirs(m); len(dirs) > 0 {
		t.Errorf("left are %v", dirs)
	}
	if strings.Contains(m.output.String(), "outlived") {
		t.Errorf("something outlived the manager:\n%s", m.output)
	}
}

// A worker has the limits of its configuration, and no file that the manager was started with.
func TestWorkersAreConfined(t *testing.T) {
	t.Parallel()
	droverd, _, _ := programs(t)
	m := setUp(t, "{embedded: true}", "", "min_workers: 1")
	text, err := os.ReadFile(m.config)
	if err != nil {
		t.Fatal(err)
	}
	confined := strings.Replace(string(text), "misbehave: {command: [", "misbehave: {limits: {open_files: 123, file_size: 1MiB}, command: [", 1)
	if err := os.WriteFile(m.config, []byte(confined), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(m.dir, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The shell opens a file and becomes the manager.
	process := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("exec 9<%s; exec %s --config %s", secret, droverd, m.config)) //nolint:gosec // the test's own
	process.Env = append(os.Environ(), "TMPDIR="+m.dir)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait() // its exit is not what is tested here
	})
	var pid int
	eventually(t, "a worker runs", func() error {
		found := childrenOf(t, process.Process.Pid, "misbehave")
		if len(found) == 0 {
			return errors.New("none does")
		}
		pid = found[len(found)-1]
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
		if err != nil {
			return err
		}
		for _, want := range []string{"Max open files            123 ", "Max file size             1048576 ", "Max core file size        0 "} {
			if !strings.Contains(string(limits), want) {
				return fmt.Errorf("no %q in:\n%s", want, limits)
			}
		}
		return nil
	})
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == secret {
			t.Errorf("the worker has the manager's file as %s", file)
		}
	}
}
