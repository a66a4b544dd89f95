package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// maxStacks bounds the answer to a DumpStacks, in bytes.
const maxStacks = 4 << 20

// read obeys the manager's instructions until the stream ends. The end of the manager's half is a drain.
func (s *service) read(stream workerv1.WorkerService_WorkServer, broken chan<- error) {
	for {
		request, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			s.drain()
			return
		case err != nil:
			broken <- status.Errorf(codes.Aborted, "read instructions: %v", err)
			return
		}
		for _, instruction := range request.GetInstructions() {
			s.obey(instruction)
		}
		s.out.waitForRoom()
	}
}

// obey carries out one instruction. One that it does not know is of a newer manager, and is skipped.
func (s *service) obey(instruction *workerv1.Instruction) {
	switch kind := instruction.GetKind().(type) {
	case *workerv1.Instruction_Task:
		s.begin(kind.Task)
	case *workerv1.Instruction_Cancel:
		s.cancel(kind.Cancel.GetRun(), causeOf(kind.Cancel.GetReason()))
	case *workerv1.Instruction_Drain:
		s.drain()
	case *workerv1.Instruction_DumpStacks:
		s.out.stacks(kind.DumpStacks.GetRequest(), allStacks)
	}
}

// begin starts a task, or lets it wait for a slot: a manager sends no more than there are, but the author's handler must
// never meet more, whatever a manager does.
func (s *service) begin(t *workerv1.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &run{number: t.GetRun(), task: t, queue: s.config.Queue, out: s.out}
	if s.runs[r.number] != nil {
		s.out.log(logReport(0, warnLevel, fmt.Sprintf("the manager began run %d twice; the second one was ignored", r.number), nil))
		return
	}
	s.runs[r.number] = r
	switch name := s.program.worker.Name; {
	case s.draining:
		s.endLocked(r, failed(r, handBack("the worker is draining")))
	case t.GetKind() != "" && t.GetKind() != name:
		s.endLocked(r, failed(r, fault.New(fault.UnknownKind, "this worker runs tasks of kind %q, not %q", name, t.GetKind()).AsPermanent()))
	case s.running < s.config.Slots:
		s.startLocked(r)
	case len(s.waiting) < s.config.Slots:
		s.waiting = append(s.waiting, r)
	default:
		s.endLocked(r, failed(r, handBack(fmt.Sprintf("the worker runs %d tasks at once and was sent too many more", s.config.Slots))))
	}
}

func (s *service) startLocked(r *run) {
	s.running++
	r.started = true
	ctx, release := r.start()
	s.out.accepted(r)
	s.runners.Go(func() { s.perform(ctx, release, r) })
}

// perform runs the author's handler on one task. It survives whatever the handler does to its own goroutine.
func (s *service) perform(ctx context.Context, release context.CancelFunc, r *run) {
	defer release()
	returned := false
	defer func() {
		if !returned {
			s.crashed(r, recover())
		}
	}()
	result, err := s.program.call(ctx, r.task.GetPayload())
	report := completed(r, result)
	if err != nil {
		report = failed(r, faultOf(ctx, err))
	}
	returned = true
	s.conclude(r, report)
}

// crashed reports a panic, or a handler that ended its goroutine, and condemns the process.
func (s *service) crashed(r *run, value any) {
	message := "the handler called runtime.Goexit"
	if value != nil {
		message = fmt.Sprintf("the handler panicked: %v", value)
	}
	trace := stack()
	s.condemn()
	s.conclude(r, failed(r, fault.New(fault.Panic, "%s", message).WithDetail(trace)))
}

// conclude frees the slot of a run that has ended and gives it to the next.
func (s *service) conclude(r *run, report *workerv1.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.endLocked(r, report)
	if len(s.waiting) > 0 {
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.startLocked(next)
	}
}

// endLocked gives a run its one outcome.
func (s *service) endLocked(r *run, report *workerv1.Report) {
	if r.ended {
		return
	}
	r.ended = true
	delete(s.runs, r.number)
	s.out.outcome(r, report)
	s.hushLocked()
}

// hushLocked says so when the worker drains and nothing runs any more.
func (s *service) hushLocked() {
	if s.draining && len(s.runs) == 0 && !s.hushed {
		s.hushed = true
		close(s.quiet)
	}
}

// cancel ends a run soon. One that is not here has ended already: its outcome is on its way.
func (s *service) cancel(number uint64, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[number]
	switch {
	case r == nil:
	case r.started:
		r.cancel(cause)
	default:
		s.waiting = slices.DeleteFunc(s.waiting, func(w *run) bool { return w == r })
		s.endLocked(r, failed(r, fault.New(kindOf(cause), "%v, before it began", cause)))
	}
}

// stack is the stack of this goroutine from the panic on.
func stack() string {
	text := string(debug.Stack())
	if i := strings.Index(text, "\npanic("); i >= 0 {
		return text[i+1:]
	}
	return text
}

// allStacks is the stacks of all goroutines, as far as they fit.
func allStacks() string {
	for size := 64 << 10; ; size *= 4 {
		buffer := make([]byte, min(size, maxStacks))
		if n := runtime.Stack(buffer, true); n < len(buffer) || len(buffer) == maxStacks {
			return clean(string(buffer[:n]), maxStacks)
		}
	}
}
