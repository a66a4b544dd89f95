package worker_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// leaver starts a worker with a child that left its group, by this command, and returns the child's number. The child holds the
// worker's output.
func leaver(t *testing.T, r *rig, command string) (p *worker.Process, sink *recorder, child int) {
	t.Helper()
	marker := filepath.Join(t.TempDir(), "pid")
	program := testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")[0]
	p, sink = r.startSpec(spec(script(t, fmt.Sprintf("%s sh -c 'echo $$ > %s; exec sleep 600' &\nexec %s", command, marker, program))))
	eventually(t, "the child runs", func() bool {
		data, _ := os.ReadFile(marker) //nolint:gosec // the test's own file
		child, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return child > 0
	})
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	return p, sink, child
}

// ends are the ways in which a worker ends.
func ends() map[string]func(*worker.Process) {
	return map[string]func(*worker.Process){
		"killed by the manager": func(p *worker.Process) { p.Kill(job.ExitOperator) },
		"killed by another":     func(p *worker.Process) { _ = syscall.Kill(p.PID(), syscall.SIGKILL) },
		"drained":               func(p *worker.Process) { p.Drain(job.ExitIdle) },
	}
}

// A descendant that left the group of its worker and holds its output neither hides the worker's end nor outlives it, however that
// comes.
func TestDescendantOutsideTheGroup(t *testing.T) {
	t.Parallel()
	for name, end := range ends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p, sink, child := leaver(t, r, "setsid")
			began := time.Now()
			end(p)
			sink.exit(t)
			if took := time.Since(began); took > 2*time.Second+busy {
				t.Errorf("it took %s", took)
			}
			eventually(t, "the child is gone", func() bool { return !alive(child) })
		})
	}
}

// A descendant that left the group and has nothing in its environment dies with its worker as well: it is known once the memory has
// been sampled, and found by its descent when the manager kills.
func TestDescendantWithoutEnvironment(t *testing.T) {
	t.Parallel()
	for name, end := range ends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p, sink, child := leaver(t, r, "env -i setsid")
			if name != "killed by the manager" && p.RSS() == 0 {
				t.Error("the worker has no memory")
			}
			end(p)
			sink.exit(t)
			eventually(t, "the child is gone", func() bool { return !alive(child) })
			eventually(t, "its note is gone", func() bool {
				notes, err := filepath.Glob(filepath.Join(r.sockets, "group-*"))
				return err == nil && len(notes) == 0
			})
		})
	}
}

// Such a descendant is noted within a moment also when nobody asks for the memory.
func TestDescendantsAreLookedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, _, child := leaver(t, r, "env -i setsid")
	eventually(t, "the child's group is noted", func() bool {
		_, err := os.Stat(filepath.Join(r.sockets, fmt.Sprintf("group-%d", child)))
		return err == nil
	})
}

// The memory of a worker is that of all its descendants, wherever they went, and is what its end is recorded with.
func TestMemoryOfStrays(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tail"); err != nil {
		t.Skip("there is no tail: it keeps what it reads")
	}
	const held = 64 << 20
	r := newRig(t)
	program := testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")[0]
	// tail keeps a line that does not end, in memory.
	hold := fmt.Sprintf("setsid sh -c '{ head -c %d /dev/zero; exec sleep 600; } | tail -n 1' &\nexec %s", held, program)
	p, sink := r.startSpec(spec(script(t, hold)))
	eventually(t, "the memory is seen", func() bool { return p.RSS() > held })
	p.Kill(job.ExitMemoryMax)
	if exit := sink.exit(t); exit.RSS <= held || p.Peak() < exit.RSS {
		t.Errorf("the end is recorded with %d bytes, the peak with %d", exit.RSS, p.Peak())
	}
	if size := p.RSS(); size != 0 {
		t.Errorf("after its end it has %d bytes", size)
	}
}

// A worker whose memory was never sampled is recorded with the most that the kernel saw.
func TestMemoryNeverSampled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	const little = 1 << 20
	p.Drain(job.ExitIdle)
	if exit := sink.exit(t); exit.RSS < little {
		t.Errorf("it is recorded with %d bytes", exit.RSS)
	}
}
