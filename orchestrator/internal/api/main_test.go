package api_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/clienttest/standin"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(knockAt); socket != "" {
		knock(socket)
		return
	}
	goleak.VerifyTestMain(m, testenv.LateDials())
}

const within = 20 * time.Second // in which everything in these tests must have happened

// world is a Redis, a queue "misbehave" and the sockets that a server is to have.
type world struct {
	redis          *testenv.Redis
	tasks          *counted
	socket, plugin string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatalf("read the URL of Redis: %v", err)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	standin.Start(t, rdb, "misbehave", standin.Options{})
	tasks, err := direct.Open(server.URL(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("open a direct client: %v", err)
	}
	t.Cleanup(func() { _ = tasks.Close() })
	dir := testenv.ShortDir(t)
	return &world{redis: server, tasks: &counted{Client: tasks}, socket: filepath.Join(dir, "drover.sock"), plugin: filepath.Join(dir, "plugin.sock")}
}

func (w *world) server(quick time.Duration) *api.Server {
	s := api.New(api.Options{Socket: w.socket, PluginSocket: w.plugin, Tasks: w.tasks, Control: &panel{}, Log: slog.New(slog.DiscardHandler)})
	if quick > 0 {
		s.Quick(quick)
	}
	return s
}

// serve runs a server and returns what ends it and waits until it is gone. It is ended with the test at the latest.
func serve(t *testing.T, s *api.Server) (stop func()) {
	t.Helper()
	if err := s.Listen(); err != nil {
		t.Fatalf("listen: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		t.Helper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("run: %v", err)
			}
		case <-time.After(within):
			t.Error("run did not end")
		}
	}
	t.Cleanup(stop)
	return stop
}

// dial returns a client on a socket, closed with the test.
func dial(t *testing.T, socket string) client.Client {
	t.Helper()
	c, err := client.Dial("unix:" + socket)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// plain returns an HTTP/1.1 client on a socket, as curl is one.
func plain(t *testing.T, socket string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: within}
}

// post sends JSON to a procedure and returns the status and the body.
func post(t *testing.T, c *http.Client, procedure, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://drover"+procedure, strings.NewReader(body))
	if err != nil {
		t.Fatalf("make a request: %v", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		t.Fatalf("call %s: %v", procedure, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("read the answer of %s: %v", procedure, err)
	}
	return response.StatusCode, string(answer)
}

// eventually polls until ok says so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("it never happened that %s", what)
		case <-tick.C:
		}
	}
}

// counted knows how many subscriptions the server follows at the moment.
type counted struct {
	client.Client
	following atomic.Int32
}

func (c *counted) Subscribe(ctx context.Context, ids []task.ID, options ...client.FollowOption) iter.Seq2[client.Update, error] {
	return func(yield func(client.Update, error) bool) {
		c.following.Add(1)
		defer c.following.Add(-1)
		c.Client.Subscribe(ctx, ids, options...)(yield)
	}
}

func (w *world) waiting() int { return int(w.tasks.following.Load()) }

// nothing is a client of an empty system.
type nothing struct{}

func (n nothing) SubmitBatch(ctx context.Context, work []client.Work) ([]client.Batched, error) {
	all := make([]client.Batched, len(work))
	for i, w := range work {
		all[i].Submitted, all[i].Err = n.Submit(ctx, w.Queue, w.Payload, w.Options...)
	}
	return all, nil
}

func (nothing) Submit(_ context.Context, queue string, _ any, _ ...client.Option) (client.Submitted, error) {
	return client.Submitted{ID: task.RandomID(queue), State: task.Waiting}, nil
}

func (nothing) Get(context.Context, task.ID) (*task.Task, error) { return nil, client.ErrUnknownTask }

func (nothing) Subscribe(_ context.Context, ids []task.ID, _ ...client.FollowOption) iter.Seq2[client.Update, error] {
	return func(yield func(client.Update, error) bool) {
		for _, id := range ids {
			if !yield(client.Update{ID: id, Unknown: true}, nil) {
				return
			}
		}
	}
}

func (nothing) Cancel(context.Context, task.ID) (task.State, error) {
	return task.Unknown, client.ErrUnknownTask
}

func (nothing) Close() error { return nil }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// run runs a server that listens for no longer than it takes to end.
func run(t *testing.T, s *api.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Errorf("run: %v", err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
