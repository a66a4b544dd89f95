package launch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk/sdktest/launch"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A worker that starts can be asked, ends with its lifeline, and leaves nothing behind: no process and no socket.
func TestLife(t *testing.T) {
	t.Parallel()
	noop := testenv.BuildBinaries(t, "plugins/sdk/sdktest/noop")
	temporary := testenv.ShortDir(t)
	p, err := launch.Start(t.Context(), launch.Spec{Command: noop, Env: []string{"TMPDIR=" + temporary}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if answer, err := p.Service().Describe(t.Context(), &workerv1.DescribeRequest{}); err != nil || answer.GetManifest().GetName() != "noop" {
		t.Errorf("describe: %v, %v", answer, err)
	}
	p.CutLifeline()
	if code, err := p.Exit(); code != 1 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	p.Close()
	if p.LeavesBehind() {
		t.Error("its group lives on")
	}
}

// A program that is no worker, that ends, that never gets ready or that cannot be started is told apart, with what it wrote.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"no worker": {"echo hello; sleep 60", []string{"not the handshake", "hello"}},
		"ends":      {"echo 'no such table' >&2; exit 3", []string{"exit code 3", "no such table"}},
		"silent":    {"exec sleep 60", []string{"was not ready within 300ms", "it wrote nothing"}},
		"closes":    {"exec >&-; exec sleep 60", []string{"closed its standard output"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := launch.Start(t.Context(), launch.Spec{Command: []string{"sh", "-c", test.script}, StartTimeout: 300 * time.Millisecond})
			if err == nil {
				p.Close()
				t.Fatal("it started")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
	for _, command := range [][]string{nil, {"/no/such/program"}, {"no-such-program-anywhere"}, {t.TempDir()}} {
		if _, err := launch.Start(t.Context(), launch.Spec{Command: command}); err == nil {
			t.Errorf("%q started", command)
		}
	}
}

// The end of the context during a start ends the start, and the process.
func TestStartIsGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	gone := errors.New("nobody wants it")
	note := filepath.Join(t.TempDir(), "begun")
	go func() {
		tick, late := time.NewTicker(time.Millisecond), time.NewTimer(20*time.Second)
		defer tick.Stop()
		defer late.Stop()
		for {
			if _, err := os.Stat(note); err == nil {
				break
			}
			select {
			case <-tick.C:
			case <-late.C:
				t.Error("the program never began")
				return
			}
		}
		cancel(gone)
	}()
	_, err := launch.Start(ctx, launch.Spec{Command: []string{"sh", "-c", "touch " + note + "; exec sleep 60"}, StartTimeout: 30 * time.Second})
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

// A worker gets next to nothing of this process's environment, unless it is to inherit it.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, inherit := range []bool{false, true} {
		_, err := launch.Start(t.Context(), launch.Spec{Command: []string{"sh", "-c", "env | cut -d= -f1; exit 1"}, Inherit: inherit})
		if err == nil || strings.Contains(err.Error(), "HOME") != inherit || !strings.Contains(err.Error(), "DROVER_LIFELINE_FD") {
			t.Errorf("inherit %v: %v", inherit, err)
		}
	}
}
