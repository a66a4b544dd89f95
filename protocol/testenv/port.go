package testenv

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports are taken below the range from which the kernel takes the local ports of outgoing connections
// (32768 and up on Linux), so that a server that is down for a moment does not lose its port to a client.
const (
	firstPort = 20000
	lastPort  = 32000
)

// FreePort is a loopback TCP port on which nothing listened a moment ago. Another process may take it before the
// caller does: prefer to listen on port 0, and where a program cannot, be ready to ask for another port.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatalf("close the probe of port %d: %v", port, err)
		}
		return port
	}
	t.Fatalf("no free loopback port between %d and %d", firstPort, lastPort)
	return 0
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
