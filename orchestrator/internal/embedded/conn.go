package embedded

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	// maxUnsent is what a client may leave unread before it is cut. Redis cuts
	// subscribers at 32 MB; replies of our own tools may be larger than that.
	maxUnsent = 64 << 20
	// maxStall is how long a client may read nothing at all of what waits for it.
	maxStall = 30 * time.Second
	// closeGrace is how long a closing connection may take to deliver the rest.
	closeGrace = time.Second
)

var errSlowClient = errors.New("the client does not read its replies")

// conn is a connection whose Write never waits for the client. miniredis sends
// replies and published messages while it holds its lock: one stopped client
// would stop the broker. What the kernel does not take at once is kept here and
// sent by a goroutine that lives only while there is something to send.
type conn struct {
	net.Conn
	raw     syscall.RawConn
	replay  []byte // read before the handover to miniredis, delivered first; used by the reader alone
	flusher *sync.WaitGroup

	mu      sync.Mutex
	unsent  []byte
	sending bool
	closed  bool
}

func newConn(c *net.TCPConn, flusher *sync.WaitGroup) (*conn, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, raw: raw, flusher: flusher}, nil
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.replay) > 0 {
		n := copy(p, c.replay)
		c.replay = c.replay[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Write takes all of p or none, and never blocks.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	sent := 0
	if !c.sending {
		n, err := c.try(p)
		if err != nil {
			return n, err
		}
		sent = n
	}
	if sent == len(p) {
		return len(p), nil
	}
	if len(c.unsent)+len(p)-sent > maxUnsent {
		c.closed = true
		_ = c.Conn.Close()
		return sent, errSlowClient
	}
	c.unsent = append(c.unsent, p[sent:]...)
	if !c.sending {
		c.sending = true
		c.flusher.Go(c.flush)
	}
	return len(p), nil
}

// try hands to the kernel what it takes without waiting.
func (c *conn) try(p []byte) (n int, err error) {
	var failed error
	err = c.raw.Write(func(fd uintptr) bool {
		n, failed = syscall.Write(int(fd), p)
		return true
	})
	if err == nil && failed != nil && !errors.Is(failed, syscall.EAGAIN) && !errors.Is(failed, syscall.EINTR) {
		err = failed
	}
	return max(n, 0), err
}

// flush sends what is waiting until nothing is, then closes if that was asked.
func (c *conn) flush() {
	for {
		c.mu.Lock()
		batch, closed := c.unsent, c.closed
		c.unsent = nil
		if len(batch) == 0 {
			c.sending = false
			if closed {
				_ = c.Conn.Close()
			}
			c.mu.Unlock()
			return
		}
		if !closed {
			_ = c.SetWriteDeadline(time.Now().Add(maxStall))
		}
		c.mu.Unlock()
		if _, err := c.Conn.Write(batch); err != nil {
			c.mu.Lock()
			c.closed, c.unsent = true, nil
			c.mu.Unlock()
		}
	}
}

// Close stops reading at once and lets what is waiting be delivered for a
// moment, so that the last reply before a hang-up arrives.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed && !c.sending {
		return c.Conn.Close()
	}
	c.closed = true
	if !c.sending {
		return c.Conn.Close()
	}
	now := time.Now()
	_ = c.SetReadDeadline(now)
	return c.SetWriteDeadline(now.Add(closeGrace))
}
