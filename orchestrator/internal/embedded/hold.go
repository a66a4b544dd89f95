package embedded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// miniredis has a lock but no call that reads everything under it: each call
// of its Go API takes the lock for itself, so a walk over the keys through that
// API sees commands going on in between. What does run under the lock as a
// whole is a script. So a snapshot is a script of one line that calls a command
// of ours; the command's handler gets a connection that is already inside the
// lock and reads with it whatever it likes.
const (
	holdCommand = "DROVER.HOLD"
	holdScript  = `return redis.call("` + holdCommand + `", ARGV[1])`
)

// holder runs functions inside the server's lock.
type holder struct {
	srv      *server.Server
	password string
	ticket   string // what the handler must be called with; no client knows it

	mu  sync.Mutex // one call at a time
	run func(*inside)
}

// register adds the command to the server. Called once, before any client.
func (h *holder) register() error { return h.srv.Register(holdCommand, h.handle) }

func (h *holder) handle(c *server.Peer, _ string, args []string) {
	// A client that calls the command has no ticket and never reaches run,
	// which only do sets, in this same goroutine.
	if len(args) != 1 || !sameSecret(args[0], h.ticket) {
		c.WriteError("ERR " + holdCommand + " is not for clients")
		return
	}
	in := &inside{srv: h.srv}
	in.w = bufio.NewWriter(&in.buf)
	in.peer = server.NewPeer(in.w)
	in.peer.Ctx = c.Ctx
	h.run(in)
	c.WriteOK()
}

// do runs f while no other command or script runs. It must not block.
func (h *holder) do(f func(*inside)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var reply bytes.Buffer
	w := bufio.NewWriter(&reply)
	peer := server.NewPeer(w)
	h.srv.Dispatch(peer, []string{"AUTH", h.password})
	done := false
	h.run = func(in *inside) { f(in); done = true }
	h.srv.Dispatch(peer, []string{"EVAL", holdScript, "0", h.ticket})
	h.run = nil
	if !done {
		_ = w.Flush()
		return fmt.Errorf("embedded broker: reading the content under the lock: the server said %q", reply.String())
	}
	return nil
}

// inside is a connection within the lock.
type inside struct {
	srv  *server.Server
	peer *server.Peer
	w    *bufio.Writer
	buf  bytes.Buffer
	err  error
}

// call runs one command and returns its reply, good until the next call. After
// the first error all replies are empty.
func (in *inside) call(args ...string) reply {
	in.buf.Reset()
	in.srv.Dispatch(in.peer, args)
	if err := in.w.Flush(); err != nil && in.err == nil {
		in.err = err
	}
	r := reply{rest: in.buf.Bytes(), err: &in.err}
	if len(r.rest) > 0 && r.rest[0] == '-' && in.err == nil {
		in.err = fmt.Errorf("%s: %s", args[0], bytes.TrimSpace(r.rest[1:]))
	}
	return r
}

// reply is a reply of RESP version 2, read from the front.
type reply struct {
	rest []byte
	err  *error
}

func (r *reply) fail(err error) {
	if *r.err == nil {
		*r.err = err
	}
	r.rest = nil
}

// number reads the first line of the next element: an integer, the length of a
// text or the number of elements that follow.
func (r *reply) number(mark byte) int {
	if *r.err != nil {
		return 0
	}
	end := bytes.IndexByte(r.rest, '\n')
	if end < 2 || r.rest[0] != mark {
		r.fail(fmt.Errorf("a reply with %q where %q was expected", r.rest[:min(len(r.rest), 20)], mark))
		return 0
	}
	n, err := strconv.Atoi(string(r.rest[1 : end-1]))
	if err != nil {
		r.fail(err)
		return 0
	}
	r.rest = r.rest[end+1:]
	return n
}

func (r *reply) integer() int { return r.number(':') }
func (r *reply) length() int  { return max(r.number('*'), 0) }

// text reads a bulk string without copying it.
func (r *reply) text() []byte {
	n := r.number('$')
	if *r.err != nil || n < 0 {
		return nil
	}
	if n+2 > len(r.rest) {
		r.fail(errors.Join(io.ErrUnexpectedEOF, errors.New("a reply is cut off")))
		return nil
	}
	s := r.rest[:n]
	r.rest = r.rest[n+2:]
	return s
}
