package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	kind        = "noop"
	concurrency = 16 // of one asynq.Server, as its users run it
	lanes       = 4
	slots       = 16
	workers     = 4
	payloadSize = 100
	startup     = 10 * time.Second
)

// bench is the redis-server that everything is measured on.
type bench struct {
	dir    string
	server *exec.Cmd
	port   int
	admin  *redis.Client
}

func newBench() (*bench, error) {
	dir, err := os.MkdirTemp("", "drover-bench")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, port: port}
	b.server = exec.Command("redis-server", "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--unixsocket", b.socket(), //nolint:gosec // our own arguments; ended by close
		"--unixsocketperm", "600", "--save", "", "--appendonly", "no", "--dir", dir, "--daemonize", "no")
	if err := b.server.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w (install it: apt-get install redis-server)", err)
	}
	b.admin = b.client("unix")
	ctx, cancel := context.WithTimeout(context.Background(), startup)
	defer cancel()
	for b.admin.Ping(ctx).Err() != nil {
		if ctx.Err() != nil {
			b.close()
			return nil, errors.New("redis-server does not answer")
		}
		time.Sleep(time.Millisecond)
	}
	return b, nil
}

func freePort() (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // a TCP listener has one
}

func (b *bench) socket() string { return filepath.Join(b.dir, "redis.sock") }

func (b *bench) client(network string) *redis.Client {
	if network == "unix" {
		return redis.NewClient(&redis.Options{Network: "unix", Addr: b.socket()})
	}
	return redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", b.port)})
}

func (b *bench) close() {
	if b.admin != nil {
		_ = b.admin.Close()
	}
	_ = b.server.Process.Kill()
	_ = b.server.Wait()
	_ = os.RemoveAll(b.dir)
}

// fill empties Redis and enqueues n tasks.
func (b *bench) fill(ctx context.Context, n int) error {
	if err := b.admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	client := asynq.NewClientFromRedisClient(b.admin)
	payload := []byte(`{"data":"` + strings.Repeat("x", payloadSize-len(`{"data":""}`)) + `"}`)
	const producers = 8
	errs := make(chan error, producers)
	var producing sync.WaitGroup
	for p := range producers {
		producing.Go(func() {
			for i := p; i < n; i += producers {
				if _, err := client.EnqueueContext(ctx, asynq.NewTask(kind, payload), asynq.Queue(kind), asynq.MaxRetry(5)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	producing.Wait()
	close(errs)
	return <-errs
}
