package worker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// script writes an executable shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "worker.sh")
	// Forked children of other tests may hold the file open for writing for a moment, and then it cannot be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // it must be executable
		t.Fatal(err)
	}
	return path
}

// A program that cannot be started, or is no worker, gives an error that names it, says what is wrong and quotes what it
// wrote; nothing of it is left: no process, no goroutine, no socket.
func TestFailedStarts(t *testing.T) {
	t.Parallel()
	notExecutable := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(notExecutable, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := func(role string) func(*testing.T) worker.Spec {
		return func(t *testing.T) worker.Spec { t.Helper(); return flawed(t, role) }
	}
	program := func(command ...string) func(*testing.T) worker.Spec {
		return func(*testing.T) worker.Spec { return spec(command...) }
	}
	shell := func(text string) func(*testing.T) worker.Spec {
		return func(t *testing.T) worker.Spec { t.Helper(); return spec(script(t, text)) }
	}
	hasty := func(of func(*testing.T) worker.Spec) func(*testing.T) worker.Spec {
		return func(t *testing.T) worker.Spec {
			t.Helper()
			s := of(t)
			s.StartTimeout = 700 * time.Millisecond
			return s
		}
	}
	for name, test := range map[string]struct {
		spec func(*testing.T) worker.Spec
		want []string
	}{
		"no command":           {program(), []string{"no command"}},
		"missing file":         {program("/nonexistent/worker"), []string{"/nonexistent/worker", "no such file"}},
		"not in the path":      {program("drover-no-such-program"), []string{"drover-no-such-program", "not found"}},
		"not executable":       {program(notExecutable), []string{notExecutable, "permission denied"}},
		"true":                 {program("/bin/true"), []string{"/bin/true", "ended with exit code 0 before it was ready", "wrote nothing"}},
		"cat":                  {program("/bin/cat"), []string{"ended with exit code 0 before it was ready", "wrote nothing"}},
		"exits with a message": {shell("echo no database >&2; exit 3"), []string{"ended with exit code 3 before it was ready", "it wrote: no database"}},
		"dies by a signal":     {shell("echo bad luck >&2; kill -SEGV $$"), []string{"ended by signal segmentation fault", "bad luck"}},
		"prints first":         {shell("echo Hello world; exec sleep 600"), []string{"not the handshake", "it wrote: Hello world"}},
		"prints a lot":         {shell("head -c 1000000 /dev/zero | tr '\\0' x; exec sleep 600"), []string{"not the handshake", "it wrote: xxxx"}},
		"many lines": {
			shell("i=0; while [ $i -lt 5000 ]; do echo line $i >&2; i=$((i+1)); done; echo the reason >&2; exit 1"),
			[]string{"line 0 | line 1 |", "... |", "| the reason"},
		},
		"closes its output":   {shell("exec >&- 2>&-; exec sleep 600"), []string{"closed its standard output"}},
		"other version":       {shell("echo '1|99|unix|/tmp/none|grpc'; exec sleep 600"), []string{"99"}},
		"dead socket":         {hasty(shell("echo '1|1|unix|/tmp/drover-none|grpc'; exec sleep 600")), []string{"not ready within 700ms"}},
		"handshake and gone":  {shell("echo '1|1|unix|/tmp/drover-none|grpc'; exit 4"), []string{"exit code 4"}},
		"silent":              {hasty(shell("exec sleep 600")), []string{"not ready within 700ms", "wrote nothing", "raise start_timeout"}},
		"silent with a child": {hasty(shell("sleep 600 & sleep 600")), []string{"not ready within 700ms"}},
		"mute":                {hasty(own(roleMute)), []string{"not ready within 700ms", "role is mute"}},
		"refuses":             {own(roleRefuses), []string{"refused its configuration", "the option color is missing", "say red or blue"}},
		"hangs in Configure":  {hasty(own(roleHangs)), []string{"not ready within 700ms"}},
		"dies in Configure":   {own(roleDiesInStart), []string{"did not get ready", "ended with exit code 7", "no space left on the disk"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			began := time.Now()
			s := test.spec(t)
			p, err := r.launcher.Start(t.Context(), s, newRecorder())
			if err == nil {
				t.Fatalf("started as %d", p.PID())
			}
			t.Logf("after %s: %v", time.Since(began).Round(time.Millisecond), err)
			for _, want := range append(test.want, "plugin p") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q", want)
				}
			}
			if len(err.Error()) > 6000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			r.noSockets()
		})
	}
}

// A start that its caller gives up ends at once, with the caller's reason, and leaves nothing.
func TestStartIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the manager stops")
	time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
	began := time.Now()
	_, err := r.launcher.Start(ctx, spec(script(t, "exec sleep 600")), newRecorder())
	if !errors.Is(err, reason) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	cancelled, stop := context.WithCancel(t.Context())
	stop()
	if _, err := r.launcher.Start(cancelled, spec("/bin/cat"), newRecorder()); !errors.Is(err, context.Canceled) {
		t.Errorf("a start after the end of its context: %v", err)
	}
}

// Once its launcher has ended, a start says that the manager is stopping.
func TestStartAfterTheEnd(t *testing.T) {
	t.Parallel()
	launcher, err := worker.NewLauncher(testenv.ShortDir(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := launcher.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := launcher.Start(t.Context(), spec("/bin/cat"), newRecorder()); err == nil || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("error %v", err)
	}
}

// The directory of sockets must exist, be private, and have a path that leaves room for a socket's name.
func TestSocketDirectory(t *testing.T) {
	t.Parallel()
	open := testenv.ShortDir(t)
	if err := os.Chmod(open, 0o755); err != nil { //nolint:gosec // the mistake
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ dir, want string }{
		"missing": {"/nonexistent", "no such file"},
		"open":    {open, "make it 0700"},
		"long":    {"/" + strings.Repeat("x", 68), "shorter path"},
	} {
		if _, err := worker.NewLauncher(test.dir, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A worker is told its queue, its slots and its manager, and says what it is.
func TestStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.startSpec(flawed(t, roleCountsSlots))
	if p.Manifest().GetName() != "flawed" || p.Slots() != 8 || p.ID() == 0 || !alive(p.PID()) || p.Leaving() {
		t.Errorf("manifest %v, slots %d, number %d, pid %d", p.Manifest(), p.Slots(), p.ID(), p.PID())
	}
	if p.RSS() < 1<<20 {
		t.Errorf("its memory is %d bytes", p.RSS())
	}
	o := sink.outcome(t, send(t, p, noLimits(), `{}`)[0])
	if want := `{"manager":"m","queue":"q","slots":8}`; o.End != job.Succeeded || string(o.Result) != want {
		t.Errorf("%+v, result %s", o, o.Result)
	}
}

// Describe asks a program what it is and leaves nothing of it.
func TestDescribe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, err := r.launcher.Describe(t.Context(), spec(testenv.BuildBinaries(t, "./plugins/sdk/sdktest/noop")...))
	if err != nil || m.GetName() != "noop" || m.GetSlots() != 16 {
		t.Errorf("manifest %v, error %v", m, err)
	}
	r.noSockets()
	if _, err := r.launcher.Describe(t.Context(), spec("/bin/true")); err == nil {
		t.Error("a program that is no worker describes itself")
	}
}
