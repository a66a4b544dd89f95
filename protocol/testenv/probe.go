package testenv

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// probeTimeout bounds one conversation with a server.
const probeTimeout = 500 * time.Millisecond

// probe is a short conversation that tells whether a server is ready, and whether it is the one that was started.
type probe struct {
	network, addr string
	questions     string // the last one makes the server close the connection
	pidMark       string // what stands before the process number in the answers
	last          string // the line that only a ready server sends, after its number
}

// ask says false when the server is not ready yet. It returns an error when another process than pid answers.
func (p probe) ask(pid int) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, p.network, p.addr)
	if err != nil {
		return false, nil // not listening yet is the reason to ask again, not a failure
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
		return false, fmt.Errorf("set the deadline of a probe: %w", err)
	}
	if _, err := conn.Write([]byte(p.questions)); err != nil {
		return false, nil // the connection was refused late: ask again
	}
	known := false
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		line := lines.Text()
		if number, found := strings.CutPrefix(line, p.pidMark); found {
			if number != strconv.Itoa(pid) {
				return false, fmt.Errorf("process %s answers at %s instead of process %d", number, p.addr, pid)
			}
			known = true
		}
		if known && line == p.last {
			return true, nil
		}
	}
	return false, nil
}
