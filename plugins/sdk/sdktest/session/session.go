package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Session is one life of a worker as its manager sees it. Its methods may be called from several goroutines.
type Session struct {
	service  workerv1.WorkerServiceClient
	complain func(format string, args ...any)
	lenient  bool
	readers  sync.WaitGroup
	sending  sync.Mutex // one sender at a time; never held together with mu, which the reader needs

	mu     sync.Mutex
	stream workerv1.WorkerService_WorkClient
	hangUp context.CancelFunc
	runs   map[uint64]*Run
	next   uint64
	logs   []Log
	stacks map[uint64]chan string
	gone   error // why the stream ended
}

// New returns the session of a worker that nobody has configured yet. complain is called, from any goroutine, for every
// report that breaks the protocol. A lenient session lets the worker report on runs that Begin did not start.
func New(service workerv1.WorkerServiceClient, lenient bool, complain func(format string, args ...any)) *Session {
	return &Session{service: service, lenient: lenient, complain: complain, runs: map[uint64]*Run{}, stacks: map[uint64]chan string{}}
}

// Describe returns what the worker says of itself.
func (s *Session) Describe(ctx context.Context) (*workerv1.Manifest, error) {
	answer, err := s.service.Describe(ctx, &workerv1.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	return answer.GetManifest(), nil
}

// Configure prepares the worker for its queue and returns its error.
func (s *Session) Configure(ctx context.Context, request *workerv1.ConfigureRequest) error {
	_, err := s.service.Configure(ctx, request)
	return err
}

// Open opens the Work stream. It is called once, after Configure.
func (s *Session) Open() error {
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := s.service.Work(ctx)
	if err != nil {
		cancel()
		return err
	}
	s.mu.Lock()
	s.stream, s.hangUp = stream, cancel
	s.mu.Unlock()
	s.readers.Go(func() { s.read(stream) })
	return nil
}

// Opened reports whether there is, or was, a Work stream.
func (s *Session) Opened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream != nil
}

// SecondStream opens another Work stream and returns how the worker refused it; nil when it did not.
func (s *Session) SecondStream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.service.Work(ctx)
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// Begin sends a task, numbers its run and returns at once. Without a stream, or after its end, the run has an error.
func (s *Session) Begin(t *workerv1.Task) *Run {
	r := &Run{session: s, begun: make(chan struct{}), ended: make(chan struct{})}
	s.mu.Lock()
	s.next++
	r.number = s.next
	switch {
	case s.gone != nil:
		r.end(nil, s.gone)
	case s.stream == nil:
		r.end(nil, errors.New("a task needs the Work stream: call Configure and Open before"))
	default:
		s.runs[r.number] = r
	}
	s.mu.Unlock()
	t.Run = r.number
	s.Send(&workerv1.Instruction{Kind: &workerv1.Instruction_Task{Task: t}})
	return r
}

// Drain asks the worker to end once its running tasks have ended.
func (s *Session) Drain() {
	s.Send(&workerv1.Instruction{Kind: &workerv1.Instruction_Drain{Drain: &workerv1.Drain{}}})
}

// HangUp breaks the Work stream, as the death of a manager does.
func (s *Session) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hangUp != nil {
		s.hangUp()
	}
}

// Close breaks the Work stream and returns when nothing reads it any more.
func (s *Session) Close() {
	s.HangUp()
	s.readers.Wait()
}

// Stacks returns the stacks of the worker's threads.
func (s *Session) Stacks(ctx context.Context) (string, error) {
	answer := make(chan string, 1)
	s.mu.Lock()
	s.next++
	request := s.next
	s.stacks[request] = answer
	s.mu.Unlock()
	s.Send(&workerv1.Instruction{Kind: &workerv1.Instruction_DumpStacks{DumpStacks: &workerv1.DumpStacks{Request: request}}})
	select {
	case text := <-answer:
		return text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the stacks: %w", ctx.Err())
	}
}

// Logs returns all lines that the worker has logged so far, in the order of their arrival.
func (s *Session) Logs() []Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Log(nil), s.logs...)
}

// Send sends instructions as they are, in one message. What cannot be sent is dropped: the reader learns why and ends every
// run with it.
func (s *Session) Send(instructions ...*workerv1.Instruction) {
	s.mu.Lock()
	stream := s.stream
	s.mu.Unlock()
	if stream == nil {
		return
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = stream.Send(&workerv1.WorkRequest{Instructions: instructions})
}

// read takes what the worker reports until the stream ends.
func (s *Session) read(stream workerv1.WorkerService_WorkClient) {
	for {
		response, err := stream.Recv()
		if err != nil {
			s.lost(err)
			return
		}
		for _, report := range response.GetReports() {
			s.take(report)
		}
	}
}

func (s *Session) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = fmt.Errorf("the Work stream has ended: %w", err)
	if errors.Is(err, io.EOF) {
		// As a manager reads it: a task that crossed with the end of the stream was never begun.
		s.gone = fault.New(fault.Interrupted, "the worker ended before the task could begin")
	}
	for _, r := range s.runs {
		r.end(nil, s.gone)
	}
	clear(s.runs)
}

// take books one report. A report on a run that is not open breaks the protocol.
func (s *Session) take(report *workerv1.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind := report.GetKind().(type) {
	case *workerv1.Report_Accepted:
		if r := s.open(kind.Accepted.GetRun(), "an Accepted"); r != nil {
			r.begin()
		}
	case *workerv1.Report_Progress:
		if r := s.open(kind.Progress.GetRun(), "progress"); r != nil {
			r.progress = append(r.progress, *task.ProgressFromProto(kind.Progress.GetProgress()))
		}
	case *workerv1.Report_Outcome:
		if r := s.open(kind.Outcome.GetRun(), "an outcome"); r != nil {
			delete(s.runs, r.number)
			r.end(outcome(kind.Outcome))
		}
	case *workerv1.Report_Log:
		s.logs = append(s.logs, s.line(kind.Log))
	case *workerv1.Report_Stacks:
		if answer := s.stacks[kind.Stacks.GetRequest()]; answer != nil {
			delete(s.stacks, kind.Stacks.GetRequest())
			answer <- kind.Stacks.GetText()
		}
	}
}

func (s *Session) open(number uint64, what string) *Run {
	r := s.runs[number]
	if r == nil && !s.lenient {
		s.complain("the worker sent %s for run %d, which is not open", what, number)
	}
	return r
}

func (s *Session) line(l *workerv1.Log) Log {
	line := Log{Run: s.runs[l.GetRun()], Level: slog.Level(l.GetLevel()), Message: l.GetMessage()}
	if len(l.GetAttributes()) > 0 {
		if err := json.Unmarshal(l.GetAttributes(), &line.Attributes); err != nil {
			s.complain("the attributes %q of log line %q are no JSON object: %v", l.GetAttributes(), l.GetMessage(), err)
		}
	}
	return line
}
