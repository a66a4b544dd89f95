package worker_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// publicMisbehave copies the program to where everybody may run it.
func publicMisbehave(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := testenv.ShortDir(t)
	program := filepath.Join(dir, "misbehave")
	if err := os.WriteFile(program, data, 0o755); err != nil { //nolint:gosec // a program for everybody
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // likewise
		t.Fatal(err)
	}
	return program
}

// other returns another user, and skips the test for those who may not start processes for others.
func other(t *testing.T) (name string, uid, gid int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may start processes as another user")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("there is no user nobody: %v", err)
	}
	uid, _ = strconv.Atoi(nobody.Uid)
	gid, _ = strconv.Atoi(nobody.Gid)
	return nobody.Username, uid, gid
}

// A worker of another user works, has that user's groups alone, and its socket is in a directory that only this user may enter;
// its own files and the notes beside it stay closed to it.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	name, uid, gid := other(t)
	program := publicMisbehave(t)
	for _, given := range []string{name, strconv.Itoa(uid)} {
		r := newRig(t)
		s := spec(program)
		s.User = given
		p, sink := r.startSpec(s)
		j := send(t, p, noLimits(), `{"do":"return","value":1}`)[0]
		if o := sink.outcome(t, j); o.End != job.Succeeded {
			t.Errorf("%+v", o)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
		if err != nil {
			t.Fatal(err)
		}
		for field, want := range map[string]int{"Uid": uid, "Gid": gid} {
			line := strings.Fields(field + ":" + after(string(status), "\n"+field+":"))
			for _, number := range line[1:5] {
				if number != strconv.Itoa(want) {
					t.Errorf("%s is %v, want %d", field, line, want)
				}
			}
		}
		for _, group := range strings.Fields(strings.SplitN(after(string(status), "\nGroups:"), "\n", 2)[0]) {
			if group == "0" {
				t.Error("it has a group of root's")
			}
		}
		if info := stat(t, r.sockets); info.Mode().Perm() != 0o711 || owner(info) != os.Geteuid() {
			t.Errorf("the directory of all: %s of user %d", info.Mode(), owner(info))
		}
		for _, entry := range entries(t, r.sockets) {
			info := stat(t, filepath.Join(r.sockets, entry))
			switch {
			case info.IsDir() && (info.Mode().Perm() != 0o700 || owner(info) != uid):
				t.Errorf("the worker's directory: %s of user %d", info.Mode(), owner(info))
			case !info.IsDir() && (info.Mode().Perm() != 0o600 || owner(info) != os.Geteuid()):
				t.Errorf("%s: %s of user %d", entry, info.Mode(), owner(info))
			}
		}
		p.Kill(job.ExitOperator)
		if exit := sink.exit(t); exit.Signal != syscall.SIGKILL {
			t.Errorf("%+v", exit)
		}
	}
}

func after(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	return rest
}

func stat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(found))
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

// What is run in place of a program has the program's name; another user runs it even from a directory that is closed to it.
func TestAnotherFile(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")[0])
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(testenv.ShortDir(t), "copy")      // its directory is closed to others
	if err := os.WriteFile(copied, data, 0o555); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	users := []string{""}
	if os.Geteuid() == 0 {
		users = append(users, "nobody")
	}
	for _, as := range users {
		r := newRig(t)
		s := spec("/not/there", "argument")
		s.Program, s.User = copied, as
		p, sink := r.startSpec(s)
		if o := sink.outcome(t, send(t, p, noLimits(), `{"do":"return","value":1}`)[0]); o.End != job.Succeeded {
			t.Errorf("%+v", o)
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID()))
		if err != nil || string(line) != "/not/there\x00argument\x00" {
			t.Errorf("it is called %q, %v", line, err)
		}
	}
}

// Another user may write to its standard streams by name, as shell scripts do.
func TestAnotherUsersOutput(t *testing.T) {
	t.Parallel()
	name, _, _ := other(t)
	program := publicMisbehave(t)
	path := filepath.Join(filepath.Dir(program), "worker.sh")
	text := fmt.Sprintf("#!/bin/sh\necho hello > /dev/stderr || exit 9\nexec %s\n", program)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // a program for everybody
		t.Fatal(err)
	}
	r := newRig(t)
	s := spec(path)
	s.User = name
	p, _ := r.startSpec(s)
	eventually(t, "its line is there", func() bool { return strings.Contains(strings.Join(p.Tail(9), "\n"), "hello") })
}

// What stands against another user is said with what to do about it.
func TestAnotherUserInVain(t *testing.T) {
	t.Parallel()
	name, _, _ := other(t)
	program := publicMisbehave(t)
	closed := filepath.Join(testenv.ShortDir(t), "closed") // its directory is root's alone
	if err := os.Symlink(program, closed); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, user, want string }{
		{program, "no-such-user", `the user "no-such-user" that it is to run as is not known`},
		{program, "4294967295", "is not known"},
		{closed, name, "may not run it: make the file executable for that user"},
	} {
		r := newRig(t)
		s := spec(c.command)
		s.User = c.user
		if _, err := r.launcher.Start(t.Context(), s, newRecorder()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %s: %v", c.command, c.user, err)
		}
		r.noSockets()
	}
}

// The limits hold from the first instruction: a script that prints them first thing sees them, and so do its children.
func TestLimitsHoldFromTheStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	program := testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")[0]
	s := spec(script(t, "cat /proc/self/limits >&2\nexec "+program))
	s.Limits = worker.Rlimits{OpenFiles: 200, Processes: 1234, FileSize: 5 << 20, CPU: 90*time.Second + time.Millisecond}
	p, sink := r.startSpec(s)
	text := strings.Join(p.Tail(100), "\n")
	for name, want := range map[string]string{
		"Max open files": "200 200 files", "Max processes": "1234 1234 processes", "Max file size": "5242880 5242880 bytes",
		"Max cpu time": "91 93 seconds", "Max core file size": "0 0 bytes",
	} {
		line := strings.SplitN(after(text, name), "\n", 2)[0]
		if got := strings.Join(strings.Fields(line), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for what, want := range map[int]uint64{unix.RLIMIT_NOFILE: 200, unix.RLIMIT_CORE: 0} {
		var limit unix.Rlimit
		if err := unix.Prlimit(p.PID(), what, nil, &limit); err != nil || limit.Max != want {
			t.Errorf("limit %d of the worker: %+v, %v", what, limit, err)
		}
	}
	if o := sink.outcome(t, send(t, p, noLimits(), `{"do":"return","value":1}`)[0]); o.End != job.Succeeded {
		t.Errorf("%+v", o)
	}
}

// Without limits a worker has the manager's, but writes no core dump.
func TestNoLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, _ := r.start()
	var mine, its unix.Rlimit
	if err := unix.Prlimit(p.PID(), unix.RLIMIT_CORE, nil, &its); err != nil || its.Cur != 0 || its.Max != 0 {
		t.Errorf("core dumps: %+v, %v", its, err)
	}
	for _, what := range []int{unix.RLIMIT_NPROC, unix.RLIMIT_FSIZE, unix.RLIMIT_CPU} {
		err := unix.Getrlimit(what, &mine)
		if err == nil {
			err = unix.Prlimit(p.PID(), what, nil, &its)
		}
		if err != nil || mine != its {
			t.Errorf("limit %d: %+v here, %+v there, %v", what, mine, its, err)
		}
	}
}

// Where tracing is forbidden, processes start and get their limits all the same, only a moment later.
func TestLimitsWithoutTracing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.launcher.ForbidTracing()
	s := spec(testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")...)
	s.Limits.FileSize = 5 << 20
	p, sink := r.startSpec(s)
	var limit unix.Rlimit
	if err := unix.Prlimit(p.PID(), unix.RLIMIT_FSIZE, nil, &limit); err != nil || limit.Max != 5<<20 {
		t.Errorf("%+v, %v", limit, err)
	}
	if o := sink.outcome(t, send(t, p, noLimits(), `{"do":"return","value":1}`)[0]); o.End != job.Succeeded {
		t.Errorf("%+v", o)
	}
}

// A limit that the kernel refuses fails the start, says which, and leaves nothing.
func TestImpossibleLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")...)
	s.Limits.OpenFiles = 1 << 62 // above fs.nr_open
	_, err := r.launcher.Start(t.Context(), s, newRecorder())
	if err == nil || !strings.Contains(err.Error(), "limit its open_files to") {
		t.Errorf("%v", err)
	}
	r.noSockets()
}
