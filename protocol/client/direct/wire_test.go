package direct_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// wire is a network in memory between clients and one server, which can be broken in the ways in which networks break. It lives in
// a bubble of testing/synctest, where real sockets would keep time from passing.
type wire struct {
	serve func(net.Conn) // takes the server's end of a new connection

	mu    sync.Mutex
	moved *sync.Cond // a byte has come, or something has broken
	state wireState
	ends  []*wireEnd
}

// wireState is what a wire does with what it is given.
type wireState int

const (
	sound  wireState = iota
	cut              // every connection is broken, and no new one comes about
	mute             // connections come about, and nothing that is sent on them ever arrives; those that were there stay so for ever
	frozen           // nothing arrives until it is sound again, and then all of it
)

func newWire(serve func(net.Conn)) *wire {
	w := &wire{serve: serve}
	w.moved = sync.NewCond(&w.mu)
	return w
}

// become changes what the wire does from now on.
func (w *wire) become(s wireState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = s
	for _, e := range w.ends {
		switch s {
		case cut:
			e.closed = true
		case mute:
			e.deaf = true
		case sound, frozen:
		}
	}
	if s == cut {
		w.ends = nil
	}
	w.moved.Broadcast()
}

// breakAll breaks what connections there are; new ones come about.
func (w *wire) breakAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.ends {
		e.closed = true
	}
	w.ends = nil
	w.moved.Broadcast()
}

// dial is the Dialer of a redis client.
func (w *wire) dial(context.Context, string, string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == cut {
		return nil, errors.New("connection refused")
	}
	near, far := &wireEnd{wire: w, deaf: w.state == mute}, &wireEnd{wire: w, deaf: w.state == mute}
	near.peer, far.peer = far, near
	w.ends = append(w.ends, near, far)
	w.serve(far)
	return near, nil
}

// wireEnd is one end of a connection. The wire's mu guards it.
type wireEnd struct {
	wire     *wire
	peer     *wireEnd
	greeting []byte // the answer to HELLO, which no state of the wire keeps back
	arrived  []byte
	closed   bool
	deaf     bool // what it is sent is lost
	deadline time.Time
	alarm    *time.Timer
}

var _ net.Conn = (*wireEnd)(nil)

func (e *wireEnd) Read(p []byte) (int, error) {
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	for {
		switch {
		case len(e.greeting) > 0:
			n := copy(p, e.greeting)
			e.greeting = e.greeting[n:]
			return n, nil
		case len(e.arrived) > 0 && e.wire.state != frozen:
			n := copy(p, e.arrived)
			e.arrived = e.arrived[n:]
			return n, nil
		case e.closed, e.peer.closed && !e.deaf:
			return 0, io.EOF
		case !e.deadline.IsZero() && !time.Now().Before(e.deadline):
			return 0, os.ErrDeadlineExceeded
		}
		e.wire.moved.Wait()
	}
}

func (e *wireEnd) Write(p []byte) (int, error) {
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	switch {
	case e.closed:
		return 0, net.ErrClosed
	case bytes.HasPrefix(bytes.ToLower(p), []byte("*2\r\n$5\r\nhello")):
		// The redis client holds a lock of its connection for events while it greets, and a bubble does not see who waits for a lock.
		e.greeting = []byte("-ERR unknown command\r\n")
		e.wire.moved.Broadcast()
	case e.deaf || e.peer.deaf:
	case e.peer.closed:
		return 0, io.ErrClosedPipe
	default:
		e.peer.arrived = append(e.peer.arrived, p...)
		e.wire.moved.Broadcast()
	}
	return len(p), nil
}

func (e *wireEnd) Close() error {
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	e.closed = true
	if e.alarm != nil {
		e.alarm.Stop()
	}
	e.wire.moved.Broadcast()
	return nil
}

func (e *wireEnd) SetReadDeadline(at time.Time) error {
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	e.deadline = at
	if e.alarm != nil {
		e.alarm.Stop()
		e.alarm = nil
	}
	if !at.IsZero() {
		e.alarm = time.AfterFunc(time.Until(at), func() {
			e.wire.mu.Lock()
			defer e.wire.mu.Unlock()
			e.wire.moved.Broadcast()
		})
	}
	return nil
}

func (e *wireEnd) SetDeadline(at time.Time) error { return e.SetReadDeadline(at) }
func (*wireEnd) SetWriteDeadline(time.Time) error { return nil } // a write never waits
func (*wireEnd) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (e *wireEnd) RemoteAddr() net.Addr           { return e.LocalAddr() }
