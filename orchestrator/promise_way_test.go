package orchestrator_test

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// way is the way to a server, which can be interrupted. Its methods are called by one goroutine.
type way struct {
	t        *testing.T
	backend  string
	address  string
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex
	ends  []net.Conn
	muted bool
}

// openWay opens a way to a server, by its TCP address or the path of its socket.
func openWay(t *testing.T, backend string) *way {
	t.Helper()
	w := &way{t: t, backend: backend, address: "127.0.0.1:0"}
	w.open()
	w.address = w.listener.Addr().String()
	t.Cleanup(func() {
		w.close()
		w.work.Wait()
	})
	return w
}

func (w *way) addr() string { return w.address }

// open lets connections come about.
func (w *way) open() {
	w.t.Helper()
	l, err := new(net.ListenConfig).Listen(w.t.Context(), "tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.listener = l
	w.work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			w.connect(near)
		}
	})
}

// connect leads a connection on to the server, unless the way is mute: then nobody answers, now or later.
func (w *way) connect(near net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, near)
	if w.muted {
		return
	}
	network := "tcp"
	if strings.HasPrefix(w.backend, "/") {
		network = "unix"
	}
	far, err := net.Dial(network, w.backend)
	if err != nil {
		_ = near.Close()
		return
	}
	w.ends = append(w.ends, far)
	deaf := new(bool) // guarded by mu
	w.work.Go(func() { w.carry(far, near, deaf) })
	w.work.Go(func() { w.carry(near, far, deaf) })
}

// carry brings what one end writes to the other. Once the way was mute while it did, it brings nothing any more.
func (w *way) carry(to, from net.Conn, deaf *bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		w.mu.Lock()
		*deaf = *deaf || w.muted
		lost := *deaf
		w.mu.Unlock()
		if err == nil && !lost {
			_, err = to.Write(buf[:n])
		}
		if err != nil && !lost {
			_, _ = to.Close(), from.Close()
		}
		if err != nil {
			return
		}
	}
}

// mute makes the way swallow everything, or lets new connections through again.
func (w *way) mute(muted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.muted = muted
}

// close breaks every connection and lets none come about.
func (w *way) close() {
	w.t.Helper()
	if err := w.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range w.ends {
		_ = end.Close()
	}
	w.ends = nil
}

func statusRequest() *apiv1.StatusRequest { return &apiv1.StatusRequest{} }
