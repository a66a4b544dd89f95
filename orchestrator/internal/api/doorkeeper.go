package api

import (
	"net"
	"sync"
	"syscall"
)

const (
	// doorConnections bounds the connections of one way in, and hostConnections those from one address of the network. More are
	// closed as they come. One connection carries maxStreams calls over HTTP/2, one over HTTP/1.1.
	doorConnections = 4096
	hostConnections = 1024
	// filesShare is the part of the manager's open files that one way in may have, as 1/filesShare: workers need the rest.
	filesShare = 4
)

// crowd is a listener that has at most so many connections open.
type crowd struct {
	net.Listener
	most, perHost int

	mu    sync.Mutex
	open  int
	hosts map[string]int
}

// bounded bounds the connections of a listener.
func bounded(l net.Listener) *crowd {
	return &crowd{Listener: l, most: mostConnections(), perHost: hostConnections, hosts: map[string]int{}}
}

// mostConnections is doorConnections, or less where the manager may open few files.
func mostConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur/filesShare < doorConnections {
		return max(1, int(files.Cur/filesShare)) //nolint:gosec // below doorConnections
	}
	return doorConnections
}

// Accept returns the next connection there is room for. Others are closed at once: who waited for room would never know.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := hostOf(conn)
		if c.enter(host) {
			guest := &guest{Conn: conn, leave: func() { c.leave(host) }}
			if unix, ok := conn.(*net.UnixConn); ok {
				return &unixGuest{guest: guest, unix: unix}, nil
			}
			return guest, nil
		}
		_ = conn.Close() // it is not wanted
	}
}

// hostOf is where a connection comes from; empty for a socket of this machine.
func hostOf(conn net.Conn) string {
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return ""
}

func (c *crowd) enter(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.most || host != "" && c.hosts[host] >= c.perHost {
		return false
	}
	c.open++
	c.hosts[host]++
	return true
}

func (c *crowd) leave(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.hosts[host]--; c.hosts[host] == 0 {
		delete(c.hosts, host)
	}
}

// guest is a connection that counts until it is closed.
type guest struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close implements net.Conn.
func (g *guest) Close() error {
	defer g.once.Do(g.leave)
	return g.Conn.Close()
}

// unixGuest is one on a Unix socket; the kernel knows who is at its other end.
type unixGuest struct {
	*guest
	unix *net.UnixConn
}
