package orchestrator_test

import (
	"fmt"
	"testing"

	"github.com/drover-jobs/drover/protocol/client/clienttest"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// Both transports keep every promise of the client against a real manager with real workers.
func TestClientPromises(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	// One slot: some tests of the suite bring their process down, and no other test's task shall be in it.
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "",
		"max_workers: 8, slots: 1, buffer: 64, retry_backoff: 1s, retry_backoff_max: 2s, max_failures: 3").start()
	const slow = 4 // both runs of the suite share one manager, and all their tests run at once
	t.Run("over the API", func(t *testing.T) {
		t.Parallel()
		clienttest.Run(t, func(t *testing.T) clienttest.Env {
			return clienttest.Env{Client: m.connect(t), Queue: "misbehave", Slow: slow}
		})
	})
	t.Run("straight to Redis", func(t *testing.T) {
		t.Parallel()
		clienttest.Run(t, func(t *testing.T) clienttest.Env {
			return clienttest.Env{Client: straight(t, r), Queue: "misbehave", Slow: slow}
		})
	})
}
