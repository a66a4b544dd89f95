// Package sdktest runs a worker inside a test: the same service that a worker process serves, behind a real gRPC connection
// in memory, with the test in the manager's place.
//
//	worker := sdktest.Start(t, sdk.New(sdk.Worker{Name: "greet"}, greet))
//	result, err := worker.Run(ctx, `{"name": "Ada"}`)
//
// It owns the connection and the worker's life from Start to the end of the test, when it drains the worker and fails the
// test if that does not end well. A payload that breaks the worker's schema is refused as a manager would refuse it. It starts
// no process and needs no Redis. Callers are tests of workers, of ours and of others.
package sdktest

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/schema"
)

// Patience bounds every step that the kit takes by itself: start, configure, the drain at the end.
const Patience = 10 * time.Second

// Worker is a worker under test. Its methods may be called from several goroutines.
type Worker struct {
	t       testing.TB
	client  workerv1.WorkerServiceClient
	conn    *grpc.ClientConn
	kind    string
	queue   string
	schema  *schema.Schema
	lenient bool
	exited  chan struct{} // closed when the worker has ended
	code    int
	exitErr error
	stop    context.CancelFunc
	readers sync.WaitGroup
	sending sync.Mutex // one sender at a time; never held together with mu, which the reader needs

	mu     sync.Mutex
	stream workerv1.WorkerService_WorkClient
	hangUp context.CancelFunc
	runs   map[uint64]*Run
	next   uint64
	logs   []Log
	stacks map[uint64]chan string
	gone   error // why the stream ended
}

// Option changes how a worker is started.
type Option func(*options)

type options struct {
	config       sdk.Config
	unconfigured bool
	anyExit      bool
	lenient      bool
}

// Options gives the worker its own options: anything that encoding/json turns into an object.
func Options(t testing.TB, value any) Option {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("write the worker's options as JSON: %v", err)
	}
	return func(o *options) { o.config.Options = text }
}

// Slots sets how many tasks the worker runs at once; the default is what its manifest says.
func Slots(n int) Option { return func(o *options) { o.config.Slots = n } }

// Queue sets the name of the queue; the default is the worker's own name.
func Queue(name string) Option { return func(o *options) { o.config.Queue = name } }

// Unconfigured leaves it to the test to call Configure, and then Open.
func Unconfigured() Option { return func(o *options) { o.unconfigured = true } }

// AnyExit lets the worker end in whatever way, for tests of workers that panic, which ends a worker with exit code 2. The
// default asks for exit code 0.
func AnyExit() Option { return func(o *options) { o.anyExit = true } }

// Lenient lets the worker report on runs that Begin did not start, for tests that send tasks of their own with Send.
func Lenient() Option { return func(o *options) { o.lenient = true } }

// Start starts a worker, configures it and opens its Work stream. When the test ends the worker is drained.
func Start(t testing.TB, program *sdk.Program, opts ...Option) *Worker {
	t.Helper()
	o := options{config: sdk.Config{Manager: "sdktest"}}
	for _, option := range opts {
		option(&o)
	}
	w := launch(t, program)
	t.Cleanup(func() { w.end(o.anyExit) })
	w.lenient = o.lenient
	manifest := w.Describe()
	w.kind = manifest.GetName()
	var err error
	if w.schema, err = schema.Parse(manifest.GetPayloadSchema()); err != nil {
		t.Fatalf("read what the worker says of itself: %v", err)
	}
	if o.config.Queue == "" {
		o.config.Queue = w.kind
	}
	w.queue = o.config.Queue
	if o.unconfigured {
		return w
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := w.Configure(ctx, o.config); err != nil {
		t.Fatalf("configure the worker: %v", err)
	}
	w.Open()
	return w
}

// launch serves the program on a listener in memory and connects to it.
func launch(t testing.TB, program *sdk.Program) *Worker {
	t.Helper()
	listener := bufconn.Listen(256 << 10)
	ctx, stop := context.WithCancel(context.Background())
	w := &Worker{t: t, exited: make(chan struct{}), stop: stop, runs: map[uint64]*Run{}, stacks: map[uint64]chan string{}}
	go func() {
		defer close(w.exited)
		w.code, w.exitErr = program.ServeOn(ctx, listener)
	}()
	conn, err := grpc.NewClient("passthrough:worker",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessage), grpc.MaxCallSendMsgSize(protocol.MaxMessage)))
	if err != nil {
		stop()
		<-w.exited
		t.Fatalf("connect to the worker: %v", err)
	}
	w.conn, w.client = conn, workerv1.NewWorkerServiceClient(conn)
	return w
}

// Describe returns what the worker says of itself.
func (w *Worker) Describe() *workerv1.Manifest {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	answer, err := w.client.Describe(ctx, &workerv1.DescribeRequest{})
	if err != nil {
		w.t.Fatalf("describe the worker: %v", err)
	}
	return answer.GetManifest()
}

// Configure prepares the worker for its queue, as Start does unless told otherwise, and returns its error.
func (w *Worker) Configure(ctx context.Context, c sdk.Config) error {
	_, err := w.client.Configure(ctx, &workerv1.ConfigureRequest{
		Queue: c.Queue, Options: c.Options, Slots: uint32(max(0, c.Slots)), Manager: c.Manager, //nolint:gosec // not negative
	})
	return err
}

// Open opens the Work stream of a worker that was started Unconfigured.
func (w *Worker) Open() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := w.client.Work(ctx)
	if err != nil {
		cancel()
		w.t.Fatalf("open the Work stream: %v", err)
	}
	w.mu.Lock()
	w.stream, w.hangUp = stream, cancel
	w.mu.Unlock()
	w.readers.Go(func() { w.read(stream) })
}

// end drains the worker and takes everything down.
func (w *Worker) end(anyExit bool) {
	w.Drain()
	late := time.NewTimer(Patience)
	defer late.Stop()
	select {
	case <-w.exited:
	case <-late.C:
		w.t.Errorf("the worker did not end within %s of its drain: a handler does not return", Patience)
	}
	w.stop()
	w.mu.Lock()
	hangUp := w.hangUp
	w.mu.Unlock()
	if hangUp != nil {
		hangUp()
	}
	if err := w.conn.Close(); err != nil {
		w.t.Errorf("close the connection to the worker: %v", err)
	}
	<-w.exited
	w.readers.Wait()
	if !anyExit && (w.code != 0 || w.exitErr != nil) {
		w.t.Errorf("the worker ended with exit code %d and error %v; want 0 and none%s", w.code, w.exitErr, hint(w.code))
	}
}

// hint says what an exit code most likely means.
func hint(code int) string {
	const afterPanic = 2
	if code != afterPanic {
		return ""
	}
	return ": a handler panicked; a test that means it to gives sdktest.AnyExit() to Start"
}
