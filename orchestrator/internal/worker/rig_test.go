package worker_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// patience is how long a test waits for what must happen, on a machine that runs many tests at once.
const patience = 60 * time.Second

// rig is a launcher that runs for one test.
type rig struct {
	t        *testing.T
	launcher *worker.Launcher
	sockets  string
}

// newRig starts a launcher. When the test ends, it must end by itself and have left no socket behind.
func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigWith(t, slog.New(slog.DiscardHandler))
}

func newRigWith(t *testing.T, log *slog.Logger) *rig {
	t.Helper()
	sockets := testenv.ShortDir(t)
	launcher, err := worker.NewLauncher(sockets, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- launcher.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the launcher ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("the launcher does not end: a process was not collected")
		}
	})
	r := &rig{t: t, launcher: launcher, sockets: sockets}
	t.Cleanup(r.noSockets) // runs before the launcher's end
	return r
}

// noSockets checks that nothing is left in the directory of sockets, a moment later: what a worker left is killed beside the report
// of its end.
func (r *rig) noSockets() {
	r.t.Helper()
	eventually(r.t, "nothing is left in the directory of sockets", func() bool {
		left, err := os.ReadDir(r.sockets)
		return err == nil && len(left) == 0
	})
}

// spec is that of a program.
func spec(command ...string) worker.Spec {
	return worker.Spec{Plugin: "p", Command: command, Queue: "q", Slots: 8, Manager: "m", StartTimeout: patience}
}

// flawed is the spec of one of the test binary's own workers.
func flawed(t *testing.T, role string) worker.Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := spec(self)
	s.Env = map[string]string{roleVariable: role}
	return s
}

// start brings up a worker that does what its tasks say. It is killed when the test ends.
func (r *rig) start() (*worker.Process, *recorder) {
	r.t.Helper()
	return r.startSpec(spec(testenv.BuildBinaries(r.t, "./plugins/sdk/sdktest/misbehave")...))
}

func (r *rig) startSpec(s worker.Spec) (*worker.Process, *recorder) {
	r.t.Helper()
	sink := newRecorder()
	p, err := r.launcher.Start(r.t.Context(), s, sink)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		p.Kill(job.ExitOperator)
		sink.exit(r.t)
	})
	return p, sink
}

// recorder is a sink that remembers everything.
type recorder struct {
	exited chan struct{} // closed by Exited

	mu         sync.Mutex
	outcomes   map[*job.Job][]job.Outcome
	progress   map[*job.Job][]task.Progress
	unfinished map[*job.Job]job.Unfinished
	ends       []job.Exit
	late       int // calls of Finished after Exited
	changed    chan struct{}
}

var _ worker.Sink = (*recorder)(nil)

func newRecorder() *recorder {
	return &recorder{
		exited: make(chan struct{}), changed: make(chan struct{}), outcomes: map[*job.Job][]job.Outcome{},
		progress: map[*job.Job][]task.Progress{}, unfinished: map[*job.Job]job.Unfinished{},
	}
}

// note lets the waiting look again. The caller holds mu.
func (r *recorder) note() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *recorder) Finished(_ uint64, j *job.Job, o job.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes[j] = append(r.outcomes[j], o)
	if len(r.ends) > 0 {
		r.late++
	}
	r.note()
}

func (r *recorder) Progressed(j *job.Job, p task.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress[j] = append(r.progress[j], p)
	r.note()
}

func (r *recorder) Exited(exit job.Exit, unfinished []job.Unfinished) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, exit)
	for _, u := range unfinished {
		r.unfinished[u.Job] = u
	}
	if len(r.ends) == 1 {
		close(r.exited)
	}
	r.note()
}

// until waits until what was recorded fulfils a condition, which is called with mu held.
func (r *recorder) until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	late := time.After(patience)
	for {
		r.mu.Lock()
		met, changed := condition(), r.changed
		r.mu.Unlock()
		if met {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// outcome waits for the one outcome of a job.
func (r *recorder) outcome(t *testing.T, j *job.Job) job.Outcome {
	t.Helper()
	r.until(t, "the job has an outcome", func() bool { return len(r.outcomes[j]) > 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcomes[j][0]
}

// exit waits for the end of the process and checks that it was told once and last.
func (r *recorder) exit(t *testing.T) job.Exit {
	t.Helper()
	select {
	case <-r.exited:
	case <-time.After(patience):
		t.Fatal("the process does not end")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ends) != 1 || r.late > 0 {
		t.Errorf("told %d ends, and %d outcomes after the end", len(r.ends), r.late)
	}
	for j, outcomes := range r.outcomes {
		if _, left := r.unfinished[j]; len(outcomes) != 1 || left {
			t.Errorf("job %s has %d outcomes, left unfinished: %v", j.ID, len(outcomes), left)
		}
	}
	return r.ends[0]
}

// orders numbers the jobs of all tests.
var orders atomic.Uint64

// order is a job for misbehave.
func order(payload string) *job.Job {
	return job.New(task.ID{Queue: "q", Key: strconv.FormatUint(orders.Add(1), 10)}, "", []byte(payload))
}

func noLimits() job.Limits { return job.Limits{KillGrace: patience} }

// send gives jobs to a process.
func send(t *testing.T, p *worker.Process, limits job.Limits, payloads ...string) []*job.Job {
	t.Helper()
	jobs := make([]*job.Job, 0, len(payloads))
	for _, payload := range payloads {
		j := order(payload)
		if !p.Send(j, limits) {
			t.Fatal("the process takes no job")
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// running waits until jobs that log into a file have begun.
func running(t *testing.T, log string, n int) {
	t.Helper()
	eventually(t, strconv.Itoa(n)+" jobs run", func() bool {
		data, err := os.ReadFile(log) //nolint:gosec // the test's own file
		return err == nil && strings.Count(string(data), "start ") >= n
	})
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

// freeze stops all threads of a process.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all threads are stopped", func() bool {
		threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*"))
		return err == nil && !slices.ContainsFunc(threads, func(thread string) bool { return stateIn(thread) != "T" })
	})
}

// state is the letter of a process's state: "" when there is no such process.
func state(pid int) string { return stateIn(filepath.Join("/proc", strconv.Itoa(pid))) }

func stateIn(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, "stat")) //nolint:gosec // of /proc
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return rest[:min(1, len(rest))]
}

// alive is false for a zombie: whoever has to collect it may be another process.
func alive(pid int) bool {
	s := state(pid)
	return s != "" && s != "Z" && s != "X"
}
