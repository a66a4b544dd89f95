package worker

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// Process is one running worker process.
type Process struct {
	id      uint64
	slots   int
	log     *slog.Logger
	s       *started
	sink    Sink
	since   time.Time
	stream  workerv1.WorkerService_WorkClient
	cancel  context.CancelFunc // of the stream
	waiting chan struct{}      // has an element when outgoing may have some
	done    chan struct{}      // closed after Exited was told

	mu       sync.Mutex
	outgoing []*workerv1.Instruction
	closed   bool // nothing is sent any more
	runs     map[uint64]*run
	lastRun  uint64
	deaf     bool           // its stream is lost: it gets nothing any more
	reason   job.ExitReason // why it was told to go; empty while it was not
	killed   bool           // it was killed for the reason, rather than asked to go
	guilty   uint64         // the run it was killed for
	lastRSS  int64          // bytes, as sampled last; 0 when it never was
	peakRSS  int64
	grace    time.Duration // kill_grace as it was heard of last
	patient  bool          // a process that was told to go got the rest of leaveGrace
	lastAsk  uint64
	stacks   map[uint64]chan string // by request
	leaving  *time.Timer            // to the kill of a process that was told to go and has nothing left to do; nil for none
}

// run is one job in the process.
type run struct {
	job     *job.Job
	started time.Time
	limits  job.Limits
	ends    time.Time   // when it runs out of time; zero for never
	expires bool        // that is its client's deadline
	from    int64       // bytes that the process had written before
	timer   *time.Timer // to the time-out, then to the end of the grace; nil for neither
	asked   cancelReason
	begun   bool // the process has said so
}

// cancelReason says why a run was asked to end; it travels to the worker.
type cancelReason string

const (
	notAsked        cancelReason = ""
	askedByTimeout  cancelReason = "timeout"
	askedByDeadline cancelReason = "deadline" // to the worker it is a timeout
	askedByClient   cancelReason = "cancelled"
	askedByShutdown cancelReason = "stop"
	askedForLock    cancelReason = "lock-lost" // to the worker it is a stop
)

// leaveGrace is how long a process that was told to go may take from the end of its last job to its own: it closes what its
// worker has open.
const leaveGrace = 5 * time.Second

func newProcess(id uint64, slots int, grace time.Duration, s *started, sink Sink, log *slog.Logger) *Process {
	return &Process{
		id: id, slots: slots, grace: grace, log: log, stacks: map[uint64]chan string{}, s: s, sink: sink, since: time.Now(),
		waiting: make(chan struct{}, 1), done: make(chan struct{}), runs: map[uint64]*run{},
	}
}

// open opens the Work stream, which lives as long as the process.
func (p *Process) open() error {
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := p.s.service.Work(ctx)
	if err != nil {
		cancel()
		return fmt.Errorf("open the work stream: %w", err)
	}
	p.stream, p.cancel = stream, cancel
	return nil
}

// close ends a stream that is not to be used.
func (p *Process) close() {
	if p.cancel != nil {
		p.cancel()
	}
}

// ID is the worker's number, unique in this manager.
func (p *Process) ID() uint64 { return p.id }

// PID is the number of its process.
func (p *Process) PID() int { return p.s.run.cmd.Process.Pid }

// Slots is how many jobs it was told to run at once.
func (p *Process) Slots() int { return p.slots }

// Manifest is what the program said of itself when it started.
func (p *Process) Manifest() *workerv1.Manifest { return p.s.manifest }

// Since is when it was ready.
func (p *Process) Since() time.Time { return p.since }

// Done is closed when the process has been collected and its sink told.
func (p *Process) Done() <-chan struct{} { return p.done }

// Tail returns at most n of the last lines that it wrote.
func (p *Process) Tail(n int) []string { return p.s.out.Tail(n) }

// Drain asks the process to end once its jobs have; reason is what its exit will be recorded as. No job may follow. A process
// that does not go when it has nothing left to do is killed.
func (p *Process) Drain(reason job.ExitReason) {
	p.mu.Lock()
	if p.reason == "" {
		p.dismiss(reason)
	}
	p.mu.Unlock()
	p.wake()
}

// dismiss tells the process to go. The caller holds mu and calls wake afterwards.
func (p *Process) dismiss(reason job.ExitReason) {
	p.reason = reason
	p.push(&workerv1.Instruction{Kind: &workerv1.Instruction_Drain{Drain: &workerv1.Drain{}}})
	p.expectEnd()
}

// expectEnd starts the grace of a process that has no reason to stay. The caller holds mu.
func (p *Process) expectEnd() {
	if p.reason != "" && len(p.runs) == 0 && p.leaving == nil && !p.closed {
		p.leaving = time.AfterFunc(p.firstGrace(), p.graceToLeaveOver)
	}
}

// firstGrace is how long a process that was told to go is waited for before it is looked at: should it be frozen, it gets no more than
// kill_grace. The caller holds mu.
func (p *Process) firstGrace() time.Duration {
	return min(p.grace, leaveGrace)
}

// graceToLeaveOver kills a process that is frozen, and any other when leaveGrace is over.
func (p *Process) graceToLeaveOver() {
	p.mu.Lock()
	first := p.firstGrace()
	frozen := p.Stopped()
	if !frozen && first < leaveGrace && !p.patient && !p.closed {
		p.patient = true
		p.leaving = time.AfterFunc(leaveGrace-first, p.graceToLeaveOver)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.s.run.killGroup()
}

// Leaving reports whether the process takes no more jobs: it was told to go, it panicked, its stream is lost, or it has ended.
func (p *Process) Leaving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || p.deaf || p.reason != ""
}

// Kill ends the process group now and records the reason, which overrides that of a drain that had not finished.
func (p *Process) Kill(reason job.ExitReason) { p.killFor(reason, 0) }

func (p *Process) killFor(reason job.ExitReason, guilty uint64) {
	p.mu.Lock()
	if !p.closed && !p.killed && (p.reason == "" || len(p.runs) > 0) {
		p.reason, p.guilty, p.killed = reason, guilty, true
	}
	p.mu.Unlock()
	p.s.run.killGroup()
}

// finish waits until the process is collected, and tells the sink how it ended and what was left in it.
func (p *Process) finish() {
	<-p.s.run.done
	p.cancel()

	p.mu.Lock()
	p.closed = true
	if p.leaving != nil {
		p.leaving.Stop()
	}
	unfinished := make([]job.Unfinished, 0, len(p.runs))
	for _, number := range slices.Sorted(maps.Keys(p.runs)) {
		r := p.runs[number]
		r.stopTimer()
		unfinished = append(unfinished, job.Unfinished{
			Job: r.job, Started: r.started, Limits: r.limits, Guilty: number == p.guilty, Unbegun: !r.begun,
			Cancelled: r.asked == askedByClient, Expired: r.asked == askedByDeadline, Tail: p.s.out.since(r.from, diagnosedLines),
		})
	}
	clear(p.runs)
	exit := p.exit(len(unfinished))
	p.mu.Unlock()
	p.wake() // lets write end

	p.sink.Exited(exit, unfinished)
	p.s.discard() // removes files, which a busy disk makes slow, so the tasks do not wait for it
	close(p.done)
}

// exit describes the end of the collected process, in which a number of jobs was left. The caller holds mu.
func (p *Process) exit(left int) job.Exit {
	state := p.s.run.state
	exit := job.Exit{
		Reason: p.reason, Worker: p.id, PID: p.PID(), Code: state.ExitCode(), Signal: signalOf(state),
		Age: time.Since(p.since), Tail: p.Tail(diagnosedLines), RSS: p.rssAtEnd(),
	}
	switch {
	case p.killed, p.reason == job.ExitPanic: // a panic's process may leave runs behind that do not end
	case p.reason != "" && left == 0: // it went as it was told
	case left == 0 && exit.Code == 0:
		exit.Reason = job.ExitLeft
	default:
		exit.Reason = job.ExitCrash
	}
	return exit
}

func signalOf(state *os.ProcessState) syscall.Signal {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return 0
}
