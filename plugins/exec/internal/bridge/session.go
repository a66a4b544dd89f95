package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-jobs/drover/plugins/exec/internal/child"
	"github.com/drover-jobs/drover/plugins/exec/internal/line"
	"github.com/drover-jobs/drover/protocol/fault"
)

// session is one persistent child and what is said with it. Two goroutines serve it, one for each direction; both end with
// the child. Whoever took it from the crew is the only one to call its methods.
type session struct {
	child    *child.Child
	settings *settings
	log      *slog.Logger  // for lines that come while no task runs
	out      chan outgoing // lines for the child; closed for the end of its input
	ready    chan error    // what came of its start, once
	written  chan struct{} // closed when nothing is written any more
	gone     chan struct{} // closed when the child, and both goroutines, are at their end

	greeted bool // it has said that it is ready; the reader's own

	mu      sync.Mutex
	current *run // nil while it is idle
}

// run is what a session knows of the task that it runs.
type run struct {
	number   uint64
	log      *slog.Logger
	progress func(done, total uint64, note string)
	answer   chan answer // of capacity 1; the first answer counts
	heard    atomic.Bool // the whole line has been written: the child may have begun
}

// outgoing is a line for the child.
type outgoing struct {
	text []byte
	task *run // nil when the line is no task
}

type answer struct {
	result json.RawMessage
	err    error
	last   bool // the child is on its way out
}

// Bounds of the end of an idle child. Their sum stays below the two seconds that a manager gives a worker that leaves.
const (
	drainGrace = time.Second
	endGrace   = 500 * time.Millisecond
)

// maxOutgoing is how many lines may wait for a child that does not read: its task and the requests to end it.
const maxOutgoing = 4

// startSession starts a child and waits until it says that it is ready. The error is a fault that names the command.
func (b *bridge) startSession(ctx context.Context) (*session, error) {
	c, err := b.launcher.Start(b.spec)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the command cannot be run: %v", err)
	}
	s := &session{
		child: c, settings: &b.settings, log: b.log, out: make(chan outgoing, maxOutgoing), ready: make(chan error, 1),
		written: make(chan struct{}), gone: make(chan struct{}),
	}
	go s.write()
	go s.read()
	late := time.NewTimer(b.settings.startTimeout)
	defer late.Stop()
	select {
	case err = <-s.ready:
	case <-s.gone:
		select {
		case err = <-s.ready: // it left at once; that is seen when it gets a task
		default:
			return nil, lastWords(c, fault.New(fault.Unavailable, "the command %q %s while it was being started", b.settings.name(), c.End()))
		}
	case <-late.C:
		err = fault.New(fault.Unavailable, `the command %q did not write {"type":"ready"} within %s: see PROTOCOL.md, or raise the option start_timeout`,
			b.settings.name(), b.settings.startTimeout)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Kill()
		<-s.gone
		return nil, err
	}
	return s, nil
}

// alive reports whether the child can take a task.
func (s *session) alive() bool {
	select {
	case <-s.gone:
		return false
	default:
		return true
	}
}

// send hands a line to the writer.
func (s *session) send(o outgoing) {
	select {
	case s.out <- o:
	case <-s.gone:
	}
}

// write writes what is sent until there is nothing more, or the child has ended. A task is one write, whose last byte ends
// the line: when it fails, no program can have understood the line.
func (s *session) write() {
	defer close(s.written)
	defer func() { _ = s.child.Stdin.Close() }() // closed twice when the child went first
	for {
		select {
		case o, ok := <-s.out:
			if !ok {
				return
			}
			if _, err := s.child.Stdin.Write(o.text); err != nil {
				return // it does not read any more: the reader sees its end
			}
			if o.task != nil {
				o.task.heard.Store(true)
			}
		case <-s.child.Done():
			return
		}
	}
}

// read takes what the child says until its end.
func (s *session) read() {
	defer close(s.gone)
	lines := line.NewReader(s.child.Stdout)
	for {
		text, err := lines.Next()
		if errors.Is(err, line.ErrTooLong) {
			tooLarge := fault.New(fault.TooLarge, "%v: store the result and answer where it is", err).AsPermanent()
			s.settle(s.running(), answer{err: tooLarge, last: true})
			s.child.Kill() // what follows has no meaning
			break
		}
		if err != nil {
			break
		}
		s.take(text)
	}
	// A child without an output can never answer.
	late := time.AfterFunc(endGrace, s.child.Kill)
	<-s.child.Done()
	late.Stop()
	_ = s.child.Stdin.Close() // ends a write that nobody will read
	_ = s.child.Stdout.Close()
	<-s.written
}

// end lets an idle child go, in the end by force, and returns when it is gone.
func (s *session) end() {
	s.send(outgoing{text: line.Drain()})
	close(s.out)
	if !s.goneWithin(drainGrace) {
		s.terminate(endGrace)
	}
}

// terminate ends the child with SIGTERM, after the grace with SIGKILL, and returns when it is gone.
func (s *session) terminate(grace time.Duration) {
	s.child.Terminate()
	if !s.goneWithin(grace) {
		s.child.Kill()
		<-s.gone
	}
}

func (s *session) goneWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.gone:
		return true
	case <-timer.C:
		return false
	}
}
