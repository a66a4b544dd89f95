package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
)

// helperVariable makes the test binary a process that serves a broker until it is killed.
const helperVariable = "DROVER_EMBEDDED_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperVariable); dir != "" {
		serveUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

func serveUntilKilled(dir string) {
	b, err := embedded.New(embedded.Options{Dir: dir, SnapshotEvery: killPeriod})
	if err == nil {
		err = b.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// journal collects log lines.
type journal struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.Write(p)
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.lines.String(), text)
}

// running is a broker with its Run in the background.
type running struct {
	*embedded.Broker
	log    *journal
	cancel context.CancelFunc
	done   chan error
}

// start runs a broker in dir and ends it with the test when nobody stopped it.
func start(t *testing.T, o embedded.Options) *running {
	t.Helper()
	r := &running{log: &journal{}, done: make(chan error, 1)}
	o.Log = slog.New(slog.NewTextHandler(r.log, nil))
	b, err := embedded.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Broker = b
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.done <- b.Run(ctx) }()
	select {
	case <-b.Ready():
	case err := <-r.done:
		cancel()
		t.Fatalf("the broker did not start: %v", err)
	case <-time.After(20 * time.Second):
		t.Fatal("the broker was not ready in 20 s")
	}
	t.Cleanup(func() {
		if r.cancel != nil {
			r.stop(t)
		}
	})
	return r
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	r.cancel = nil
	select {
	case err := <-r.done:
		if err != nil {
			t.Errorf("Run ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the broker did not stop in 20 s")
	}
}

func (r *running) client(t *testing.T) *redis.Client {
	t.Helper()
	return connect(t, r.Address(), r.Password())
}

func connect(t *testing.T, address, password string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: address, Password: password, MaxRetries: -1})
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Error(err)
		}
	})
	return c
}

// until polls for at most ten seconds.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not in 10 s: %s", what)
		}
	}
}

// must returns a function that takes what a call returned and ends the test on an error.
func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
