package testenv

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DownAfter is after which silence the servers of a Sentinel set or a Cluster call a node dead: a failover begins then, and takes about
// a second more. It is as long as a busy machine may keep a living node from answering.
const DownAfter = 1500 * time.Millisecond

// replicated are the lines of redis.conf that all servers with replicas share. Without them the first synchronisation waits for seconds.
func replicated() []string {
	return []string{"repl-diskless-sync yes", "repl-diskless-sync-delay 0", "repl-ping-replica-period 1"}
}

// dial returns a client of one server, which is closed with the test.
func dial(t testing.TB, addr, password string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: addr, Password: password, ContextTimeoutEnabled: true, DialerRetries: 1, PoolSize: 2,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// within asks again and again until the answer is yes, and fails the test after readyTimeout.
func within(t testing.TB, what string, ok func(ctx context.Context) bool) {
	t.Helper()
	const look = 20 * time.Millisecond
	deadline := time.Now().Add(readyTimeout)
	poll := time.NewTicker(look)
	defer poll.Stop()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		yes := ok(ctx)
		cancel()
		if yes {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("within %s it did not happen that %s", readyTimeout, what)
		}
		<-poll.C
	}
}

// tell sends one command and fails the test when it is refused.
func tell(t testing.TB, c *redis.Client, command ...any) {
	t.Helper()
	if err := c.Do(context.Background(), command...).Err(); err != nil {
		t.Fatalf("%v: %v", command, err)
	}
}

// linked reports whether a server is a replica that has caught up with its primary.
func linked(ctx context.Context, c *redis.Client) bool {
	info, err := c.Info(ctx, "replication").Result()
	return err == nil && strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
}

// byPort returns the server at an address.
func byPort(nodes []*Redis, addr string) *Redis {
	for _, n := range nodes {
		if n.Addr() == addr {
			return n
		}
	}
	return nil
}
