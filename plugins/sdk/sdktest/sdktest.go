// Package sdktest runs a worker inside a test: the same service that a worker process serves, behind a real gRPC connection
// in memory, with the test in the manager's place.
//
//	worker := sdktest.Start(t, sdk.New(sdk.Worker{Name: "greet"}, greet))
//	result, err := worker.Run(ctx, `{"name": "Ada"}`)
//
// It owns the connection and the worker's life from Start to the end of the test, when it drains the worker and fails the
// test if that does not end well. A payload that breaks the worker's schema is refused as a manager would refuse it. Start starts
// no process and needs no Redis. Callers are tests of workers, of ours and of others.
//
// Conform holds a worker to what every worker owes its manager; ConformCommand does so with the program as a process. The
// checks themselves are package conform's, which `drover plugin test` uses as well.
package sdktest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest/session"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/schema"
)

// Patience bounds every step that the kit takes by itself: start, configure, the drain at the end.
const Patience = 10 * time.Second

// Worker is a worker under test. Its methods may be called from several goroutines.
type Worker struct {
	t       testing.TB
	life    *life
	session *session.Session
	kind    string
	queue   string
	schema  *schema.Schema
}

// Option changes how a worker is started.
type Option func(*options)

type options struct {
	config       sdk.Config
	unconfigured bool
	anyExit      bool
	lenient      bool
	// For Conform alone.
	slow, noisy, panic json.RawMessage
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
	l, err := serve(program)
	if err != nil {
		t.Fatal(err)
	}
	w := &Worker{t: t, life: l, session: session.New(l.service, o.lenient, t.Errorf)}
	t.Cleanup(func() { w.end(o.anyExit) })
	manifest := w.Describe()
	w.kind = manifest.GetName()
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

// Describe returns what the worker says of itself.
func (w *Worker) Describe() *workerv1.Manifest {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	manifest, err := w.session.Describe(ctx)
	if err != nil {
		w.t.Fatalf("describe the worker: %v", err)
	}
	return manifest
}

// Configure prepares the worker for its queue, as Start does unless told otherwise, and returns its error.
func (w *Worker) Configure(ctx context.Context, c sdk.Config) error {
	return w.session.Configure(ctx, &workerv1.ConfigureRequest{
		Queue: c.Queue, Options: c.Options, Slots: uint32(max(0, c.Slots)), Manager: c.Manager, //nolint:gosec // not negative
	})
}

// Open opens the Work stream of a worker that was started Unconfigured.
func (w *Worker) Open() {
	w.t.Helper()
	if err := w.session.Open(); err != nil {
		w.t.Fatalf("open the Work stream: %v", err)
	}
}

// end drains the worker and takes everything down.
func (w *Worker) end(anyExit bool) {
	w.Drain()
	late := time.NewTimer(Patience)
	defer late.Stop()
	select {
	case <-w.life.exited:
	case <-late.C:
		w.t.Errorf("the worker did not end within %s of its drain: a handler does not return", Patience)
	}
	w.stop()
	w.session.HangUp()
	w.life.Close()
	w.session.Close()
	if code, err := w.life.Exit(); !anyExit && (code != 0 || err != nil) {
		w.t.Errorf("the worker ended with exit code %d and error %v; want 0 and none%s", code, err, hint(code))
	}
}

// stop ends the worker from outside, as a manager's Shutdown does.
func (w *Worker) stop() { w.life.stop() }

// hint says what an exit code most likely means.
func hint(code int) string {
	const afterPanic = 2
	if code != afterPanic {
		return ""
	}
	return ": a handler panicked; a test that means it to gives sdktest.AnyExit() to Start"
}
