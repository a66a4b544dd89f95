package direct_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/drover-jobs/drover/protocol/client/clienttest"
	"github.com/drover-jobs/drover/protocol/client/clienttest/standin"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// The direct client keeps every promise of the client library on a real Redis.
func TestSuiteOnRedis(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{Password: "s3cret"})
	standin.Start(t, connect(t, server.URL()), "misbehave", standin.Options{})
	clienttest.Run(t, func(t *testing.T) clienttest.Env {
		t.Helper()
		return clienttest.Env{Client: open(t, server.URL()), Queue: "misbehave"}
	})
}

// The direct client keeps them as well on the Redis that a manager embeds.
func TestSuiteOnMiniredis(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	url := "redis://" + server.Addr()
	standin.Start(t, connect(t, url), "misbehave", standin.Options{})
	clienttest.Run(t, func(t *testing.T) clienttest.Env {
		t.Helper()
		return clienttest.Env{Client: open(t, url), Queue: "misbehave"}
	})
}

// It keeps them on a Redis that Sentinel watches, with a password on both, and in a Cluster, where moreover each submit waits for a replica.
func TestSuiteOnReplicas(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) string{
		"sentinel": func(t *testing.T) string {
			t.Helper()
			return testenv.StartSentinel(t, testenv.SentinelOptions{Password: "s3cret", SentinelPassword: "w4tch"}).URL()
		},
		"cluster": func(t *testing.T) string {
			t.Helper()
			return testenv.StartCluster(t, testenv.ClusterOptions{Password: "s3cret"}).URL() + "?wait_replicas=1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := start(t)
			standin.Start(t, connect(t, url), "misbehave", standin.Options{})
			clienttest.Run(t, func(t *testing.T) clienttest.Env {
				t.Helper()
				return clienttest.Env{Client: open(t, url), Queue: "misbehave"}
			})
		})
	}
}

const within = 20 * time.Second // in which everything in these tests must have happened
