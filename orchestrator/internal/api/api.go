// Package api is the stage that answers applications, plugins and the console: the services of drover/api/v1 over HTTP
// (gRPC, gRPC-Web, connect and plain JSON; the ends of tasks as server-sent events, too) on Unix sockets, and on the network with TLS and tokens.
//
// It owns the sockets, from before anybody else may touch them to the removal of their files, who may call what on which
// of them, and the limits of what a caller may send and how long it may take. It does not own tasks: it asks a client of
// package protocol/client; nor the state of the manager: it asks for a status. Callers outside are never waited for: who
// does not read what it asked for is cut off.
//
// Package orchestrator makes it. Listen opens the sockets; Run serves until its context ends, then ends the streams and
// the waits, gives other calls a moment, and returns when all its goroutines are gone.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
)

// Options say what is served where. All but PluginSocket are needed.
type Options struct {
	// Socket is the path of the socket with full rights; PluginSocket that of the one on which tasks may be submitted
	// and followed, nothing else. Empty opens none.
	Socket, PluginSocket string
	// Remote is how the API is reached over the network; nil for not at all.
	Remote  *Remote
	Tasks   client.Client
	Control Control
	// Ready says why the manager can take no tasks now; nil is always ready. Metrics serves its metrics; nil for none.
	Ready   func() error
	Metrics http.Handler
	Log     *slog.Logger
	// Allowance bounds what callers may ask for; nothing written is DefaultAllowance.
	Allowance Allowance
}

// limits bound what a caller may cost.
type limits struct {
	header time.Duration // to send the head of a request
	body   time.Duration // to send its body
	send   time.Duration // to read one message of an answer
	idle   time.Duration // for a connection without a call
	finish time.Duration // for calls in progress at the end
	unary  time.Duration // for one call that is no wait
	beat   time.Duration // between signs of life of a silent stream of server-sent events
}

func defaultLimits() limits {
	return limits{
		header: 10 * time.Second, body: 30 * time.Second, send: 30 * time.Second, idle: 2 * time.Minute,
		finish: 500 * time.Millisecond, unary: time.Minute, beat: heartbeat,
	}
}

// maxStreams is how many calls one connection carries at once; a client that has more opens another.
const maxStreams = 1000

// Server serves the API of one manager.
type Server struct {
	options Options
	limits  limits
	full    *socket
	plugin  *socket
	lent    []*socket    // see Lend
	remote  net.Listener // nil for none
	callers *callers
	served  bool           // Run has begun; it closes the sockets
	calls   sync.WaitGroup // handlers that run
}

// New returns a server that has opened nothing.
func New(o Options) *Server {
	if o.Allowance == (Allowance{}) {
		o.Allowance = DefaultAllowance()
	}
	return &Server{options: o, limits: defaultLimits(), callers: newCallers(o.Allowance, o.Log)}
}

// Listen opens the sockets. A file that an earlier manager left is replaced; an error says when a manager still answers
// on it. Callers that connect wait until Run serves.
func (s *Server) Listen() error {
	full, err := listen(s.options.Socket)
	if err != nil {
		return err
	}
	if s.options.PluginSocket != "" {
		plugin, err := listen(s.options.PluginSocket)
		if err != nil {
			return errors.Join(err, full.close())
		}
		s.plugin = plugin
	}
	s.full = full
	if s.options.Remote == nil {
		return nil
	}
	remote, err := listenRemote(s.options.Remote, s.options.Log)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	s.remote = remote
	return nil
}

// closeRemote closes the network's socket. Closing it again is no error.
func (s *Server) closeRemote() error {
	if s.remote == nil {
		return nil
	}
	if err := s.remote.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the API's address: %w", err)
	}
	return nil
}

// Close closes the sockets of a server that was never run, because something else kept the manager from starting. After
// Run it does nothing.
func (s *Server) Close() error {
	if s.served || s.full == nil {
		return nil
	}
	err := s.full.close()
	if s.plugin != nil {
		err = errors.Join(err, s.plugin.close())
	}
	for _, lent := range s.lent {
		err = errors.Join(err, lent.close())
	}
	return errors.Join(err, s.closeRemote())
}

// Run serves what Listen opened until ctx ends. The error is nil after a clean end.
func (s *Server) Run(ctx context.Context) error {
	if s.full == nil {
		return errors.New("serve the API: its sockets are not open")
	}
	s.served = true
	// Waits and streams end when ctx does; other calls go on for a moment.
	waits, endWaits := context.WithCancelCause(context.Background())
	all, endAll := context.WithCancel(context.Background())
	defer endAll()
	stop := context.AfterFunc(ctx, func() { endWaits(errStopping) })
	defer stop()

	doors := s.doors(waits)
	servers := make([]*http.Server, len(doors))
	var serving sync.WaitGroup
	failed := make(chan error, len(doors))
	for i, d := range doors {
		servers[i] = s.server(all, d.handler)
		s.options.Log.Info("the API is served", "at", d.where)
		serving.Go(func() {
			if err := servers[i].Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve the API on %s: %w", d.where, err)
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	endWaits(errStopping)
	s.finish(servers)
	endAll()
	serving.Wait()
	s.calls.Wait()
	for _, d := range doors {
		err = errors.Join(err, d.close())
	}
	s.options.Log.Info("the API has ended")
	return err
}

// door is one way in, and what may be done there.
type door struct {
	where    string
	listener net.Listener
	handler  http.Handler
	close    func() error
}

// doors are all that were opened.
func (s *Server) doors(waits context.Context) []door {
	doors := []door{{where: s.full.path, listener: bounded(s.full.listener), handler: s.monitored(s.handler(waits, everything)), close: s.full.close}}
	workers := s.lent
	if s.plugin != nil {
		workers = append([]*socket{s.plugin}, workers...)
	}
	for _, w := range workers {
		doors = append(doors, door{where: w.path, listener: bounded(w.listener), handler: s.handler(waits, tasksOnly(s.options.Socket)), close: w.close})
	}
	if s.remote != nil {
		doors = append(doors, door{
			where: "https://" + s.remote.Addr().String(), listener: s.remote, handler: shared(s.options.Remote.Origins, s.doorman(s.monitored(s.handler(waits, everything)))), close: s.closeRemote,
		})
	}
	return doors
}

// finish gives the calls in progress a moment, then closes their connections. The moment is short: a stop of the manager has a
// bound, and a connection over HTTP/2 on which nothing happens takes a second to end by itself.
func (s *Server) finish(servers []*http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), s.limits.finish)
	defer cancel()
	var ending sync.WaitGroup
	for _, server := range servers {
		ending.Go(func() {
			if err := server.Shutdown(ctx); err != nil {
				s.options.Log.Debug("connections to the API did not end in time and are cut", "after", s.limits.finish)
				_ = server.Close() // nothing is left to be told
			}
		})
	}
	ending.Wait()
}

// server has no time-out for a whole request or answer, because a wait may take hours: see timed.
func (s *Server) server(ctx context.Context, handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout: s.limits.header,
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withPeer,
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
	}
}
