package sdk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// Exit codes of a worker process.
const (
	exitDone  = 0 // drained, or stopped by its manager
	exitError = 1 // could not start, or lost the stream
	exitPanic = 2 // a handler panicked; the code of a Go program that panics
)

// Bounds of waiting, where nobody else sets one.
const (
	panicGrace   = 5 * time.Second // for the other runs after a panic, before they are cancelled
	abandonAfter = time.Second     // from that to giving them up
	flushBound   = 5 * time.Second // for a manager to read the last outcomes
)

// service is one life of a worker: what the manager calls. See the package comment for its states.
type service struct {
	workerv1.UnimplementedWorkerServiceServer
	program *Program
	out     *outbox
	quiet   chan struct{} // closed when it drains and nothing runs
	over    chan struct{} // closed when the process has nothing left to do
	readers sync.WaitGroup
	runners sync.WaitGroup

	mu         sync.Mutex
	configured bool // Configure has been called, and returned unless configuring
	preparing  bool
	unfit      bool // Configure failed
	config     Config
	working    bool // a Work stream has been opened
	draining   bool
	hushed     bool // quiet is closed
	ended      bool // over is closed
	exit       int
	runs       map[uint64]*run // all that have no outcome yet
	waiting    []*run          // those of them for which no slot is free, oldest first
	running    int
	timers     []*time.Timer
}

func newService(p *Program, yields int) *service {
	return &service{
		program: p, out: newOutbox(yields), quiet: make(chan struct{}), over: make(chan struct{}), runs: map[uint64]*run{},
	}
}

// Describe implements the service.
func (s *service) Describe(context.Context, *workerv1.DescribeRequest) (*workerv1.DescribeResponse, error) {
	return &workerv1.DescribeResponse{Manifest: s.program.manifest}, nil
}

// Configure implements the service. Its errors are texts for the operator.
func (s *service) Configure(ctx context.Context, request *workerv1.ConfigureRequest) (*workerv1.ConfigureResponse, error) {
	s.mu.Lock()
	if s.configured || s.draining {
		s.mu.Unlock()
		return nil, status.Error(codes.FailedPrecondition, "this worker has been configured before: start another process")
	}
	slots := int(min(request.GetSlots(), maxSlots))
	if slots == 0 {
		slots = s.program.worker.slots()
	}
	s.configured, s.preparing = true, true
	s.config = Config{Queue: request.GetQueue(), Options: request.GetOptions(), Slots: slots, Manager: request.GetManager()}
	config := s.config
	s.mu.Unlock()

	err := s.configure(context.WithValue(ctx, runKey{}, &run{out: s.out}), config)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.preparing, s.unfit = false, err != nil
	if err != nil {
		return nil, unconfigured(err)
	}
	return &workerv1.ConfigureResponse{}, nil
}

// unconfigured is the status of a Configure that failed. A fault of kind unavailable says that something which the worker needs
// is not there, and is no word against the configuration: its code is Aborted, by which a manager knows the two apart.
func unconfigured(err error) error {
	code, text := codes.FailedPrecondition, err.Error()
	var f *fault.Fault
	if errors.As(err, &f) && f.Kind == fault.Unavailable {
		code, text = codes.Aborted, strings.Replace(text, f.Error(), f.Message, 1) // the operator needs no kind
	}
	return status.Error(code, clean(text, fault.MaxMessage))
}

// configure calls the author's function and turns a panic into an error with its stack.
func (s *service) configure(ctx context.Context, config Config) (err error) {
	if s.program.worker.Configure == nil {
		return nil
	}
	returned := false
	defer func() {
		if !returned {
			err = fmt.Errorf("the worker's Configure panicked: %v\n%s", recover(), stack())
		}
	}()
	err = s.program.worker.Configure(ctx, config)
	returned = true
	return err
}

// Work implements the service: it reads instructions and writes reports until the worker has drained or the stream is lost.
func (s *service) Work(stream workerv1.WorkerService_WorkServer) error {
	if err := s.open(); err != nil {
		return err
	}
	written, broken := make(chan error, 1), make(chan error, 1)
	go func() { written <- s.out.write(stream.Send) }()
	s.readers.Go(func() { s.read(stream, broken) }) // ends with the stream, right after this function

	var err error
	select {
	case <-s.quiet:
		s.out.close()
		late := time.NewTimer(flushBound)
		defer late.Stop()
		select {
		case err = <-written:
		case <-late.C:
			err = status.Error(codes.DeadlineExceeded, "the manager did not read the last outcomes")
			s.lose()
		}
	case <-stream.Context().Done():
		err = stream.Context().Err()
		s.lose()
	case err = <-broken:
		s.lose()
	case err = <-written:
		s.lose()
	}
	s.finish()
	return err
}

// open admits the one Work stream of a process.
func (s *service) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.configured || s.preparing || s.unfit:
		return status.Error(codes.FailedPrecondition, "call Configure, and wait for its success, before Work")
	case s.working:
		return status.Error(codes.AlreadyExists, "this worker has a Work stream: a process has one in its life")
	case s.draining:
		return status.Error(codes.Unavailable, "this worker is stopping")
	}
	s.working = true
	return nil
}
