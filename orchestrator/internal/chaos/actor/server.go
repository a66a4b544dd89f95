package actor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// patience bounds the start of a process, on a machine that is busy with other things.
const patience = 30 * time.Second

// Server is a redis-server or a memcached of the run. It listens on a Unix socket, which no other process can take while it is
// down.
type Server struct {
	name    string
	dir     string
	socket  string
	command []string
	greet   string // what is sent to it
	answer  string // what a ready one answers
	process *process
}

// NewRedis starts a redis-server that writes everything to disk before it answers.
func NewRedis(ctx context.Context, dir string) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server is needed: install the package redis-server: %w", err)
	}
	s := &Server{name: "redis", dir: filepath.Join(dir, "redis"), greet: "PING\r\n", answer: "+PONG"}
	s.socket = filepath.Join(s.dir, "s")
	s.command = []string{
		program, "--port", "0", "--unixsocket", s.socket, "--unixsocketperm", "700", "--dir", s.dir, "--daemonize", "no",
		"--save", "", "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction",
	}
	return s, s.begin(ctx)
}

// NewMemcached starts a memcached.
func NewMemcached(ctx context.Context, dir string) (*Server, error) {
	program, err := exec.LookPath("memcached")
	if err != nil {
		return nil, fmt.Errorf("memcached is needed: install the package memcached: %w", err)
	}
	s := &Server{name: "memcached", dir: filepath.Join(dir, "memcached"), greet: "version\r\n", answer: "VERSION"}
	s.socket = filepath.Join(s.dir, "s")
	s.command = []string{program, "-s", s.socket, "-m", "16", "-t", "1"}
	if os.Geteuid() == 0 {
		s.command = append(s.command, "-u", "root") // it refuses to run as root unless told so
	}
	return s, s.begin(ctx)
}

func (s *Server) begin(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of %s: %w", s.name, err)
	}
	return s.Start(ctx)
}

// Socket is the path of its Unix socket.
func (s *Server) Socket() string { return s.socket }

// Start starts a server that is down and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	var err error
	if s.process, err = launch(s.command, nil, s.dir, filepath.Join(s.dir, "log")); err != nil {
		return err
	}
	if err := until(ctx, patience, s.ready); err != nil {
		return fmt.Errorf("%s does not answer; see %s: %w", s.name, filepath.Join(s.dir, "log"), err)
	}
	return nil
}

// ready asks the server for a sign of life.
func (s *Server) ready(ctx context.Context) error {
	if !s.process.alive() {
		return errors.New("it has ended")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", s.socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(s.greet)); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, s.answer) {
		return fmt.Errorf("it answers %q", strings.TrimSpace(line))
	}
	return nil
}

// KillFor kills the server, and starts it again after a while, or when ctx ends.
func (s *Server) KillFor(ctx context.Context, d time.Duration) error {
	s.process.kill()
	_ = Rest(ctx, d) // it must be up again in any case
	return s.Start(context.WithoutCancel(ctx))
}

// FreezeFor stops the server for a while, or until ctx ends.
func (s *Server) FreezeFor(ctx context.Context, d time.Duration) error {
	if err := s.process.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	_ = Rest(ctx, d) // it must go on in any case
	return s.process.signal(syscall.SIGCONT)
}

// Alive reports whether it has not ended by itself.
func (s *Server) Alive() bool { return s.process.alive() }

// Close ends the server.
func (s *Server) Close() { s.process.kill() }
