package intake_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy is a way to Redis that can be broken.
type proxy struct {
	listener net.Listener
	network  string
	backend  string

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	work  sync.WaitGroup
}

func startProxy(t *testing.T, network, backend string) *proxy {
	t.Helper()
	l := must[net.Listener](t)(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	p := &proxy{listener: l, network: network, backend: backend, conns: map[net.Conn]struct{}{}}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.reset()
		p.work.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial(p.network, p.backend)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns[near], p.conns[far] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.work.Go(func() { p.copy(near, far) })
		p.work.Go(func() { p.copy(far, near) })
	}
}

func (p *proxy) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	p.mu.Lock()
	delete(p.conns, to)
	delete(p.conns, from)
	p.mu.Unlock()
	_ = to.Close()
	_ = from.Close()
}

// reset breaks all connections at once, in whatever they are.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}
