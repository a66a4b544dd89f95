package embedded

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// listener accepts clients on a free loopback port and hands those that know
// the password to the server.
type listener struct {
	tcp      *net.TCPListener
	srv      *server.Server
	password string

	ending     chan struct{}  // closed by close
	goroutines sync.WaitGroup // the accept loop, clients being admitted
	flushers   sync.WaitGroup // replies still being delivered

	mu      sync.Mutex
	closed  bool
	waiting map[*conn]struct{} // not admitted yet; the server knows the others
}

func listen(srv *server.Server, password string) (*listener, error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("embedded broker: listening on 127.0.0.1: %w", err)
	}
	return &listener{tcp: l, srv: srv, password: password, ending: make(chan struct{}), waiting: map[*conn]struct{}{}}, nil
}

func (l *listener) address() string { return l.tcp.Addr().String() }

// accept serves until close is called. Running out of file descriptors ends
// nothing: it waits a moment and goes on.
func (l *listener) accept() {
	for {
		tcp, err := l.tcp.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-l.ending:
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		c, err := newConn(tcp, &l.flushers)
		if err != nil || !l.note(c) {
			_ = tcp.Close()
			continue
		}
		l.goroutines.Go(func() { l.admit(c) })
	}
}

func (l *listener) note(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.waiting[c] = struct{}{}
	return true
}

func (l *listener) admit(c *conn) {
	err := c.admit(l.password)
	l.mu.Lock()
	delete(l.waiting, c)
	l.mu.Unlock()
	if err != nil {
		_ = c.Close()
		return
	}
	l.srv.ServeConn(c)
}

// close ends the accept loop and every connection and waits for the commands
// under way. wake is called again and again meanwhile: a client that waits in a
// blocking command looks up only when something happens.
func (l *listener) close(wake func()) {
	_ = l.tcp.Close()
	close(l.ending)
	l.mu.Lock()
	l.closed = true
	for c := range l.waiting {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.goroutines.Wait()

	gone := make(chan struct{})
	go func() {
		defer close(gone)
		l.srv.Close()
		l.flushers.Wait()
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return
		case <-tick.C:
			wake()
		}
	}
}
