package testenv_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// client opens what an address names.
func client(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	options, err := broker.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	c := options.Open()
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// reads waits until the client reads a value.
func reads(t *testing.T, c redis.UniversalClient, key, want string) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		got, err := c.Get(ctx, key).Result()
		cancel()
		if err == nil && got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is %q, %v; want %q", key, got, err, want)
		}
	}
}

// A set of Sentinel survives the kill of its primary, and a failover by hand, and a client finds the new one by itself.
func TestSentinel(t *testing.T) {
	t.Parallel()
	s := testenv.StartSentinel(t, testenv.SentinelOptions{Password: "s3cret", SentinelPassword: "watch"})
	c := client(t, s.URL())
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	first := s.Primary()
	if err := client(t, first.URL()).Do(t.Context(), "wait", 2, 5000).Err(); err != nil {
		t.Fatal(err)
	}
	first.Kill()
	second := s.AwaitPrimary(first)
	reads(t, c, "k", "v")
	first.Start()
	s.Failover()
	s.AwaitPrimary(second)
	reads(t, c, "k", "v")
}

// A Cluster survives the kill of a primary, a failover by hand and the move of a slot, and a client finds its keys by itself.
func TestCluster(t *testing.T) {
	t.Parallel()
	s := testenv.StartCluster(t, testenv.ClusterOptions{Password: "s3cret"})
	c := client(t, s.URL())
	const key = "asynq:{pull}:k"
	if err := c.Set(t.Context(), key, "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.MoveSlot(key)
	reads(t, c, key, "v")
	before := s.Primary(key)
	s.Failover(key)
	after := s.AwaitPrimary(key, before)
	reads(t, c, key, "v")
	if err := c.Set(t.Context(), key, "w", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client(t, after.URL()).Do(t.Context(), "wait", 1, 5000).Err(); err != nil {
		t.Fatal(err)
	}
	after.Kill()
	s.AwaitPrimary(key, after)
	reads(t, c, key, "w")
}
