package reaper_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// busy is what a machine that runs many tests at once may add to a bound.
const busy = 3 * time.Second

// startManager starts a manager and returns it with the processes that it has, by name.
func startManager(t *testing.T, dir string) (manager *exec.Cmd, pids map[string]int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	manager = exec.CommandContext(t.Context(), self, managerArgument, dir) //nolint:gosec // ourselves
	manager.Stderr = os.Stderr
	output, err := manager.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	pids = map[string]int{}
	lines := bufio.NewScanner(output)
	for range len(family()) + 1 {
		if !lines.Scan() {
			t.Fatal("the manager printed no more processes")
		}
		var pid int
		number, name, _ := strings.Cut(lines.Text(), " ")
		if _, err := fmt.Sscan(number, &pid); err != nil || pid == 0 {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		pids[name] = pid
	}
	t.Cleanup(func() {
		for _, pid := range pids {
			if t.Failed() && alive(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return manager, pids
}

// bystander is a process that belongs to no worker of the directory, though it looks alike. It is killed when the test ends.
func bystander(t *testing.T, environment ...string) int {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Env = environment
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	return cmd.Process.Pid
}

// A manager that dies by SIGKILL leaves no process of its workers, wherever that went, and no directory; nothing else is harmed.
func TestDeathOfAManager(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testenv.ShortDir(t), "sockets")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	others := []int{
		bystander(t, reaper.Variable+"="+dir), // the directory itself is no worker's
		bystander(t, reaper.Variable+"="+dir+"-of-another/plugin-dir1"),
		bystander(t, "X"+reaper.Variable+"="+dir+"/plugin-dir1"),
		bystander(t, "X="+reaper.Variable+"="+dir+"/plugin-dir1"),
	}
	manager, pids := startManager(t, dir)
	// What ends managers does not end the reaper.
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		eventually(t, "the reaper ignores signals", func() bool { return ignores(t, pids["reaper"], s) })
		if err := syscall.Kill(pids["reaper"], s); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := manager.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range pids {
		eventually(t, "it is gone: "+name, func() bool { return !alive(pid) })
	}
	took := time.Since(began)
	t.Logf("all were gone after %s", took.Round(time.Millisecond))
	if took > 2*time.Second+busy {
		t.Errorf("all were gone after %s", took)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory: %v", err)
	}
	for n, pid := range others {
		if !alive(pid) {
			t.Errorf("bystander %d was killed", n)
		}
	}
	_ = manager.Wait() // it was killed
}

// ignores reads the mask of ignored signals.
func ignores(t *testing.T, pid int, s syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "SigIgn:")
	var mask uint64
	if _, err := fmt.Sscanf(strings.TrimSpace(rest), "%x", &mask); err != nil {
		t.Fatal(err)
	}
	return mask&(1<<(s-1)) != 0
}

// A reaper that dies is replaced, and the new one does the same. A stop of the manager ends it.
func TestDeathOfAReaper(t *testing.T) {
	t.Parallel()
	dir := testenv.ShortDir(t)
	manager, pids := startManager(t, dir)
	if err := syscall.Kill(pids["reaper"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var second int
	eventually(t, "there is another reaper", func() bool {
		for _, p := range reaper.Tree(manager.Process.Pid) {
			cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
			if p.PID != pids["reaper"] && strings.Contains(string(cmdline), reaper.Argument) {
				second = p.PID
			}
		}
		return second != 0
	})
	if err := manager.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := manager.Wait(); err != nil {
		t.Errorf("the manager: %v", err)
	}
	for name, pid := range pids {
		if alive(pid) {
			t.Errorf("left: %s", name)
		}
	}
	if alive(second) {
		t.Error("left: the second reaper")
	}
}

// A reaper whose manager said that nothing is left looks for nothing: a stop is not to read all of /proc once more.
func TestDismissedReaper(t *testing.T) {
	t.Parallel()
	dir := testenv.ShortDir(t)
	manager, pids := startManager(t, dir)
	if err := manager.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := manager.Wait(); err != nil {
		t.Errorf("the manager: %v", err)
	}
	for name, pid := range pids {
		if (name == "reaper") == alive(pid) {
			t.Errorf("%s: alive is %t", name, alive(pid))
		}
		if name != "reaper" {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
}

// A note says who leads the group, not only its number: a process that was given the number later, or a note from before a boot or
// torn by a crash, gets nobody killed.
func TestStaleNotes(t *testing.T) {
	t.Parallel()
	pid := bystander(t)
	p, err := reaper.Look(pid)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, note string
		killed     bool
	}{
		{name: "the number was given away", note: fmt.Sprintf("%d %d %s", p.Start-1, p.Session, boot)},
		{name: "another boot", note: fmt.Sprintf("%d %d 00000000-0000-0000-0000-000000000000", p.Start, p.Session)},
		{name: "torn", note: fmt.Sprintf("%d %d", p.Start, p.Session)},
		{name: "empty"},
		{name: "sound", note: fmt.Sprintf("%d %d %s", p.Start, p.Session, boot), killed: true},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("group-%d", pid)), []byte(c.note), 0o600); err != nil {
			t.Fatal(err)
		}
		killed, clean := reaper.Sweep(dir)
		if (killed == 1) != c.killed || alive(pid) == c.killed || !clean {
			t.Errorf("%s: %d were killed, clean: %v", c.name, killed, clean)
		}
	}
}

// What one worker left is killed, what another has is not. A stray's group dies with it, also without its leader.
func TestSweepOfOneWorker(t *testing.T) {
	t.Parallel()
	dir := testenv.ShortDir(t)
	mine, other := bystander(t, reaper.Variable+"="+dir+"/a"), bystander(t, reaper.Variable+"="+dir+"/b")
	stray := exec.Command("sh", "-c", "sleep 600 & echo $!; exec sleep 600")
	stray.Env = []string{"PATH=" + os.Getenv("PATH")}
	stray.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output, err := stray.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(output, &child); err != nil {
		t.Fatal(err)
	}
	leader, err := reaper.Look(stray.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := stray.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = stray.Wait() // it was killed
	if !alive(child) {
		t.Fatal("the child is gone already")
	}
	killed, clean := reaper.SweepWorker(dir+"/a", []reaper.Process{leader})
	if killed != 2 || !clean || alive(mine) || alive(child) || !alive(other) {
		t.Errorf("%d were killed, clean: %v; left: %v and %v, the other: %v", killed, clean, alive(mine), alive(child), alive(other))
	}
}

// A process is killed only while it is the one that was looked at.
func TestKillOfAnother(t *testing.T) {
	t.Parallel()
	p, err := reaper.Look(bystander(t))
	if err != nil {
		t.Fatal(err)
	}
	another := p
	another.Start--
	another.Kill()
	if !alive(p.PID) {
		t.Fatal("a process died for another's sake")
	}
	p.Kill()
	eventually(t, "it is gone", func() bool { return !alive(p.PID) })
}

// A program's name may hold what looks like the next fields.
func TestLookAtStrangeNames(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), ") Z 1 (x")
	if err := os.Symlink(sleep, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "600") //nolint:gosec // made above
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	eventually(t, "it has become the program", func() bool {
		p, err := reaper.Look(cmd.Process.Pid)
		return err == nil && p.RSS > 0
	})
	if p, err := reaper.Look(cmd.Process.Pid); err != nil || p.Gone() || p.Parent != os.Getpid() || p.Start == 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A reaper that is called by a person says so and touches nothing.
func TestReapByHand(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{nil, {"relative"}, {"/a", "/b"}} {
		var output strings.Builder
		if code := reaper.Reap(arguments, strings.NewReader(""), &output); code != 2 || !strings.Contains(output.String(), "starts its reaper itself") {
			t.Errorf("%q: code %d, %q", arguments, code, output.String())
		}
	}
}
