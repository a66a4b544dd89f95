package testenv

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// RedisOptions say how a redis-server is started. The zero value is a server on a loopback port, without
// password, that keeps nothing on disk.
type RedisOptions struct {
	// UnixSocket makes it listen on a socket in its own directory and on no port.
	UnixSocket bool
	// AppendOnly makes every write durable before it is answered, so that it outlives Kill.
	AppendOnly bool
	// Password is required from clients when not empty. It may contain no white space, quote or backslash.
	Password string
	// Config holds further lines of its redis.conf, such as "maxmemory 4mb".
	Config []string
	// clusterNode gives it a port for the bus of a Cluster.
	clusterNode bool
}

// Redis is a running redis-server that belongs to one test. Its methods are not for several goroutines at once.
type Redis struct {
	server  server
	options RedisOptions
	port    int
	busPort int // of a node of a Cluster
}

// StartRedis starts a redis-server and returns when it answers. It is killed and its directory removed when the
// test ends. A missing redis-server fails the test.
func StartRedis(t testing.TB, options RedisOptions) *Redis {
	t.Helper()
	program := lookPath(t, "redis-server")
	r := &Redis{options: options}
	r.server = server{t: t, name: "redis-server", dir: ShortDir(t), probe: r.probe}
	r.server.command = func() []string { return []string{program, r.configPath()} }
	r.server.launchAnywhere(func() {
		if !options.UnixSocket {
			r.port = FreePort(t)
		}
		if options.clusterNode { // by default it would be 10000 more than the port, which an outgoing connection may have
			r.busPort = FreePort(t)
		}
		r.writeConfig()
	})
	return r
}

// Network is "tcp" or "unix".
func (r *Redis) Network() string {
	if r.options.UnixSocket {
		return "unix"
	}
	return "tcp"
}

// Addr is "127.0.0.1:port", or the path of the Unix socket. It stays the same over Start.
func (r *Redis) Addr() string {
	if r.options.UnixSocket {
		return filepath.Join(r.server.dir, "redis.sock")
	}
	return loopback(r.port)
}

// URL is the address and password in the form that go-redis and asynq parse: redis://:password@127.0.0.1:port/0
// or unix://:password@/path.
func (r *Redis) URL() string {
	user := ""
	if r.options.Password != "" {
		user = ":" + r.options.Password + "@"
	}
	if r.options.UnixSocket {
		return "unix://" + user + r.Addr()
	}
	return "redis://" + user + r.Addr() + "/0"
}

// Password is the one of the options.
func (r *Redis) Password() string { return r.options.Password }

// Dir is the server's directory: its redis.conf, log and append-only files.
func (r *Redis) Dir() string { return r.server.dir }

// PID is the process number, 0 while the server is down.
func (r *Redis) PID() int { return r.server.pid() }

// Kill ends the server with SIGKILL and returns when it is gone. Without AppendOnly its content is lost.
func (r *Redis) Kill() { r.server.kill() }

// Stop ends the server with SIGTERM and returns when it is gone.
func (r *Redis) Stop() { r.server.t.Helper(); r.server.stop() }

// Start starts a server that was stopped or killed again, on the same address, and returns when it answers.
func (r *Redis) Start() { r.server.t.Helper(); r.server.relaunch() }

// Freeze halts the server with SIGSTOP: connections stay open and nothing answers.
func (r *Redis) Freeze() { r.server.t.Helper(); r.server.signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (r *Redis) Thaw() { r.server.t.Helper(); r.server.signal(syscall.SIGCONT) }

func (r *Redis) configPath() string { return filepath.Join(r.server.dir, "redis.conf") }

func (r *Redis) writeConfig() {
	r.server.t.Helper()
	lines := []string{
		"daemonize no", `save ""`, "dir " + r.server.dir, "bind 127.0.0.1", "port " + strconv.Itoa(r.port),
		"appendfsync always", "maxmemory-policy noeviction",
	}
	if r.options.UnixSocket {
		lines = append(lines, "unixsocket "+r.Addr(), "unixsocketperm 700")
	}
	if r.options.AppendOnly {
		lines = append(lines, "appendonly yes")
	}
	if r.options.Password != "" {
		lines = append(lines, "requirepass "+r.options.Password)
	}
	if r.options.clusterNode {
		lines = append(lines, "cluster-enabled yes", "cluster-port "+strconv.Itoa(r.busPort))
	}
	lines = append(lines, r.options.Config...)
	content := strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(r.configPath(), []byte(content), 0o600); err != nil {
		r.server.t.Fatalf("write the configuration of redis-server: %v", err)
	}
}

// probe asks for the server's own process number, which it gives while it still loads its content, and for a PONG,
// which it does not.
func (r *Redis) probe(pid int) (bool, error) {
	questions := "INFO server\r\nPING\r\nQUIT\r\n"
	if r.options.Password != "" {
		questions = "AUTH " + r.options.Password + "\r\n" + questions
	}
	return probe{network: r.Network(), addr: r.Addr(), questions: questions, pidMark: "process_id:", last: "+PONG"}.ask(pid)
}
