package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// Process is one running worker process.
type Process struct {
	id      uint64
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
	reason   job.ExitReason // why it was told to go; empty while it was not
	guilty   uint64         // the run it was killed for
}

// run is one job in the process.
type run struct {
	job     *job.Job
	started time.Time
	limits  job.Limits
	timer   *time.Timer // to the time-out, then to the end of the grace; nil for neither
	asked   cancelReason
}

// cancelReason says why a run was asked to end; it travels to the worker.
type cancelReason string

const (
	notAsked        cancelReason = ""
	askedByTimeout  cancelReason = "timeout"
	askedByClient   cancelReason = "cancelled"
	askedByShutdown cancelReason = "stop"
)

func newProcess(id uint64, s *started, sink Sink, log *slog.Logger) *Process {
	return &Process{
		id: id, log: log, s: s, sink: sink, since: time.Now(),
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

// ID is the worker's number, unique in this manager.
func (p *Process) ID() uint64 { return p.id }

// PID is the number of its process.
func (p *Process) PID() int { return p.s.run.cmd.Process.Pid }

// Manifest is what the program said of itself when it started.
func (p *Process) Manifest() *workerv1.Manifest { return p.s.manifest }

// Since is when it was ready.
func (p *Process) Since() time.Time { return p.since }

// Done is closed when the process has been collected and its sink told.
func (p *Process) Done() <-chan struct{} { return p.done }

// Tail returns at most n of the last lines that it wrote.
func (p *Process) Tail(n int) []string { return p.s.out.Tail(n) }

// Drain asks the process to end once its jobs have; reason is what its exit will be recorded as. No job may follow.
func (p *Process) Drain(reason job.ExitReason) {
	p.mu.Lock()
	if p.reason == "" {
		p.reason = reason
		p.push(&workerv1.Instruction{Kind: &workerv1.Instruction_Drain{Drain: &workerv1.Drain{}}})
	}
	p.mu.Unlock()
	p.wake()
}

// Leaving reports whether the process takes no more jobs: it was told to go, it panicked, or it has ended.
func (p *Process) Leaving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || p.reason != ""
}

// Kill ends the process group now and records the reason, which overrides that of a drain that had not finished.
func (p *Process) Kill(reason job.ExitReason) { p.killFor(reason, 0) }

func (p *Process) killFor(reason job.ExitReason, guilty uint64) {
	p.mu.Lock()
	if p.reason == "" || len(p.runs) > 0 && p.guilty == 0 {
		p.reason, p.guilty = reason, guilty
	}
	p.mu.Unlock()
	p.s.run.killGroup()
}

// RSS returns the process's resident memory in bytes; 0 when it cannot be read, as after its end.
func (p *Process) RSS() int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// follow ends the stream of a process that has been collected, should anybody still hold the other end of it.
func (p *Process) follow() {
	<-p.s.run.done
	timer := time.NewTimer(pipeGrace)
	defer timer.Stop()
	select {
	case <-timer.C:
		p.cancel()
	case <-p.done:
	}
}

// finish waits until the process is collected, and tells the sink how it ended and what was left in it.
func (p *Process) finish() {
	<-p.s.run.done
	p.cancel()
	p.s.client.Kill()
	_ = p.s.run.stdout.Close()

	p.mu.Lock()
	p.closed = true
	reason, guilty := p.reason, p.guilty
	unfinished := make([]job.Unfinished, 0, len(p.runs))
	for number, r := range p.runs {
		r.stopTimer()
		unfinished = append(unfinished, job.Unfinished{Job: r.job, Started: r.started, Guilty: number == guilty})
	}
	clear(p.runs)
	p.mu.Unlock()
	p.wake() // lets write end

	exit := p.s.exitOf(reason, p.id, time.Since(p.since))
	switch {
	case exit.Reason == "" && exit.Code == 0 && len(unfinished) == 0:
		exit.Reason = job.ExitLeft
	case exit.Reason == "":
		exit.Reason = job.ExitCrash
	}
	p.sink.Exited(exit, unfinished)
	close(p.done)
}

func signalOf(state *os.ProcessState) syscall.Signal {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return 0
}
