package direct_test

import (
	"log/slog"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/testenv"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		testenv.StopSharedManager()
		os.Exit(code)
	}))
}

// quiet drops what is logged.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// connect returns a redis client of the test's own.
func connect(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	options, err := broker.Parse(url)
	if err != nil {
		t.Fatalf("read the URL of Redis: %v", err)
	}
	rdb := options.Open()
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// open returns a direct client that is closed in the end.
func open(t *testing.T, url string) *direct.Client {
	t.Helper()
	c, err := direct.Open(url, quiet())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}
