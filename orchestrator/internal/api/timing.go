package api

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"
)

// pace sets the deadlines of one call on its connection. A server's own time-outs would hold for the whole call, and a
// wait may take hours.
type pace struct {
	conn *http.ResponseController
	send time.Duration
}

type paceKey struct{}

// timed gives each request limits.body for its body, and its handler the pace in its context. Once the body has been read
// to its end the server of net/http forgets the deadline, and the caller may be silent for as long as it likes.
func (s *Server) timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		defer s.calls.Done()
		p := &pace{conn: http.NewResponseController(w), send: s.limits.send}
		if r.ContentLength != 0 { // without a body there is no end at which the server forgets the deadline
			_ = p.conn.SetReadDeadline(time.Now().Add(s.limits.body)) // where there are no deadlines there is no network
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), paceKey{}, p)))
	})
}

// paceOf returns the pace of a call; one that does nothing outside of a server.
func paceOf(ctx context.Context) *pace {
	if p, ok := ctx.Value(paceKey{}).(*pace); ok {
		return p
	}
	return &pace{}
}

// send sends one message of a stream, or its head alone. The deadline goes when it is sent: HTTP/2 would end a stream that is
// silent for longer.
func send[M any](p *pace, stream *connect.ServerStream[M], message *M) error {
	p.beforeSend()
	err := stream.Send(message)
	if err == nil {
		p.sent()
	}
	return err
}

// sent takes the deadline of beforeSend away.
func (p *pace) sent() {
	if p.conn != nil {
		_ = p.conn.SetWriteDeadline(time.Time{}) // see timed
	}
}

// beforeSend gives the caller the time to read what is about to be sent; one that does not is cut off.
func (p *pace) beforeSend() {
	if p.conn != nil {
		_ = p.conn.SetWriteDeadline(time.Now().Add(p.send)) // see timed
	}
}
