package testenv

import (
	"os"
	"strconv"
	"syscall"
	"testing"
)

// Memcached is a running memcached on a loopback port that belongs to one test. Its methods are not for several
// goroutines at once.
type Memcached struct {
	server server
	port   int
}

// StartMemcached starts a memcached and returns when it answers; args are added to its command line. It is
// killed when the test ends. A missing memcached fails the test.
func StartMemcached(t testing.TB, args ...string) *Memcached {
	t.Helper()
	program := lookPath(t, "memcached")
	m := &Memcached{}
	m.server = server{t: t, name: "memcached", dir: ShortDir(t), probe: func(pid int) (bool, error) {
		questions := "stats\r\nquit\r\n"
		return probe{network: "tcp", addr: m.Addr(), questions: questions, pidMark: "STAT pid ", last: "END"}.ask(pid)
	}}
	m.server.command = func() []string {
		command := []string{program, "-l", "127.0.0.1", "-p", strconv.Itoa(m.port), "-U", "0", "-m", "16", "-t", "2"}
		if os.Geteuid() == 0 {
			command = append(command, "-u", "root") // it refuses to run as root unless told so
		}
		return append(command, args...)
	}
	m.server.launchAnywhere(func() { m.port = FreePort(t) })
	return m
}

// Addr is "127.0.0.1:port". It stays the same over Start.
func (m *Memcached) Addr() string { return loopback(m.port) }

// PID is the process number, 0 while the server is down.
func (m *Memcached) PID() int { return m.server.pid() }

// Kill ends the server with SIGKILL and returns when it is gone; all it held is lost.
func (m *Memcached) Kill() { m.server.kill() }

// Start starts a killed server again, on the same address and empty, and returns when it answers.
func (m *Memcached) Start() { m.server.t.Helper(); m.server.relaunch() }

// Freeze halts the server with SIGSTOP: connections stay open and nothing answers.
func (m *Memcached) Freeze() { m.server.t.Helper(); m.server.signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (m *Memcached) Thaw() { m.server.t.Helper(); m.server.signal(syscall.SIGCONT) }
