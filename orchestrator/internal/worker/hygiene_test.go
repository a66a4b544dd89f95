package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A worker gets nothing of the manager's environment but where programs and temporary files are, nothing of its input, and
// none of its open files. What the configuration gives it, it gets.
func TestNothingIsInherited(t *testing.T) {
	t.Setenv("DROVER_TEST_SECRET", "hunter2")
	secret, err := os.Create(filepath.Join(t.TempDir(), "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = secret.Close() }()
	r := newRig(t)
	s := spec(testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")...)
	s.API, s.Env = "unix:/run/x.sock", map[string]string{"COLOR": "red"}
	p, _ := r.startSpec(s)

	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		"PATH", "TMPDIR", "TZ", "LANG", "COLOR", protocol.EnvAPI, protocol.EnvLifeline, protocol.CookieKey, "DROVER_WORKER_DIR",
		"PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR",
	}
	var names []string
	for variable := range strings.SplitSeq(strings.TrimSuffix(string(environ), "\x00"), "\x00") {
		name, _, _ := strings.Cut(variable, "=")
		names = append(names, name)
		if !slices.Contains(allowed, name) {
			t.Errorf("the worker has %s", name)
		}
	}
	for _, want := range []string{"PATH", "COLOR", protocol.EnvAPI, protocol.EnvLifeline} {
		if !slices.Contains(names, want) {
			t.Errorf("the worker has no %s", want)
		}
	}
	for _, file := range openFiles(t, p.PID()) {
		if file.fd == 0 && file.target != os.DevNull || file.target == secret.Name() || strings.HasSuffix(file.target, "secret") {
			t.Errorf("the worker has %s open as %d", file.target, file.fd)
		}
	}
}

type openFile struct {
	fd     int
	target string
}

func openFiles(t *testing.T, pid int) []openFile {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []openFile
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil { // else it was closed meanwhile
			fd, _ := strconv.Atoi(e.Name())
			files = append(files, openFile{fd, target})
		}
	}
	return files
}

// Output of any size, without a newline, never makes a worker wait; its end is kept.
func TestOutputNeverBlocks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	j := send(t, p, noLimits(), `{"do":"print","bytes":1000000,"value":1}`)[0]
	if o := sink.outcome(t, j); o.End != job.Succeeded {
		t.Errorf("%+v", o)
	}
	eventually(t, "the output is there", func() bool { return len(p.Tail(1)) == 1 })
	if tail := p.Tail(10); len(tail) != 1 || !strings.HasPrefix(tail[0], "xxxx") || len(tail[0]) > 510 {
		t.Errorf("the tail is %d lines: %.80q", len(tail), tail)
	}
	if lines := p.Tail(0); len(lines) != 0 {
		t.Errorf("no lines are %q", lines)
	}
	p.Kill(job.ExitOperator)
	if exit := sink.exit(t); len(exit.Tail) != 1 || exit.Reason != job.ExitOperator {
		t.Errorf("%+v", exit)
	}
}

// Children of a worker that hold its output open neither hide its end nor outlive it: the whole group is killed.
func TestGroupDiesAsOne(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*worker.Process){
		"killed by the manager": func(p *worker.Process) { p.Kill(job.ExitOperator) },
		"killed by another":     func(p *worker.Process) { _ = syscall.Kill(p.PID(), syscall.SIGKILL) },
		"drained":               func(p *worker.Process) { p.Drain(job.ExitIdle) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p, sink := r.start()
			o := sink.outcome(t, send(t, p, noLimits(), `{"do":"fork","ms":600000}`)[0])
			child, err := strconv.Atoi(string(o.Result))
			if err != nil || !alive(child) {
				t.Fatalf("no child: %s, %v", o.Result, err)
			}
			end(p)
			sink.exit(t)
			eventually(t, "the child is gone", func() bool { return !alive(child) })
		})
	}
}

// The kernel's parent-death signal follows the thread that forked. The threads of this program may end, all but the launcher's,
// and no child dies of it, wherever its start was asked for.
func TestThreadsThatEndKillNoChild(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	program := testenv.BuildBinaries(t, "./plugins/sdk/sdktest/noop")[0]
	const n = 8
	var mu sync.Mutex
	processes := map[*worker.Process]*recorder{}
	var starters sync.WaitGroup
	for range n {
		starters.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			sink := newRecorder()
			p, err := r.launcher.Start(t.Context(), spec(program), sink)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			processes[p] = sink
			mu.Unlock()
		})
	}
	starters.Wait()
	endThreads()
	for p, sink := range processes {
		if o := sink.outcome(t, send(t, p, noLimits(), `{}`)[0]); o.End != job.Succeeded || !alive(p.PID()) {
			t.Errorf("worker %d: %+v", p.ID(), o)
		}
		p.Kill(job.ExitOperator)
	}
	for _, sink := range processes {
		sink.exit(t)
	}
}

// endThreads ends the program's idle threads: more goroutines than there are threads take one each and end with it.
func endThreads() {
	const many = 100
	var here, gone sync.WaitGroup
	here.Add(many)
	for range many {
		gone.Go(func() {
			runtime.LockOSThread() // never unlocked
			here.Done()
			here.Wait()
		})
	}
	gone.Wait()
}

// Two hundred starts and kills, some of them while the process starts, leave no process, no socket and no open file. Not in
// parallel, because open files are the whole program's.
func TestNothingAddsUp(t *testing.T) {
	r := newRig(t)
	program := testenv.BuildBinaries(t, "./plugins/sdk/sdktest/noop")[0]
	cycle := func(i int) {
		sink := newRecorder()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hurried := i%4 == 3
		if hurried {
			time.AfterFunc(time.Duration(i)*100*time.Microsecond, cancel)
		}
		p, err := r.launcher.Start(ctx, spec(program), sink)
		if err != nil {
			if !hurried {
				t.Error(err)
			}
			return
		}
		if i%2 == 0 {
			send(t, p, noLimits(), `{}`)
		}
		p.Kill(job.ExitOperator)
		sink.exit(t)
		if s := state(p.PID()); s != "" {
			t.Errorf("process %d is in state %s", p.PID(), s)
		}
	}
	cycle(0)
	before := len(openFiles(t, os.Getpid()))
	const cycles, abreast = 200, 4
	var starters sync.WaitGroup
	for range abreast {
		starters.Go(func() {
			for i := range cycles / abreast {
				cycle(i)
			}
		})
	}
	starters.Wait()
	r.noSockets()
	eventually(t, "the open files are as many as before", func() bool { return len(openFiles(t, os.Getpid())) <= before })
}
