package testenv

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Slots of a Cluster (Redis Cluster Specification).
const clusterSlots = 16384

// ClusterOptions say how a Cluster is started. The zero value has no password.
type ClusterOptions struct{ Password string }

// Cluster is three primaries with a replica each. It belongs to one test, and its methods are not for several goroutines at once.
type Cluster struct {
	t       testing.TB
	options ClusterOptions
	nodes   []*Redis
	clients []*redis.Client // of the nodes, in their order
	ids     []string
}

// StartCluster starts a Cluster and returns when every node says that all slots are served and the replicas have caught up. Everything is
// killed when the test ends.
func StartCluster(t testing.TB, options ClusterOptions) *Cluster {
	t.Helper()
	const primaries, all = 3, 6
	c := &Cluster{t: t, options: options}
	config := append(replicated(), "cluster-config-file nodes.conf", fmt.Sprintf("cluster-node-timeout %d", DownAfter.Milliseconds()),
		"cluster-replica-validity-factor 0", "cluster-require-full-coverage no", "cluster-allow-replica-migration no")
	if options.Password != "" {
		config = append(config, "masterauth "+options.Password)
	}
	for range all {
		n := StartRedis(t, RedisOptions{Password: options.Password, Config: config, clusterNode: true})
		client := dial(t, n.Addr(), options.Password)
		id, err := client.Do(t.Context(), "cluster", "myid").Text()
		if err != nil {
			t.Fatalf("ask a node for its name: %v", err)
		}
		c.nodes, c.clients, c.ids = append(c.nodes, n), append(c.clients, client), append(c.ids, id)
	}
	for i, client := range c.clients {
		tell(t, client, "cluster", "set-config-epoch", i+1)
		if i < primaries {
			tell(t, client, "cluster", "addslotsrange", i*clusterSlots/primaries, (i+1)*clusterSlots/primaries-1)
		}
		if i > 0 {
			tell(t, c.clients[0], "cluster", "meet", "127.0.0.1", c.nodes[i].port, c.nodes[i].busPort)
		}
	}
	for _, client := range c.clients {
		within(t, "the nodes know each other", func(ctx context.Context) bool {
			text, err := client.ClusterNodes(ctx).Result()
			return err == nil && strings.Count(text, "connected") == all && !strings.Contains(text, "handshake") && !strings.Contains(text, "disconnected")
		})
	}
	for i := primaries; i < all; i++ {
		tell(t, c.clients[i], "cluster", "replicate", c.ids[i-primaries])
	}
	for i, client := range c.clients {
		within(t, "all slots are served and the replicas have caught up", func(ctx context.Context) bool {
			info, err := client.ClusterInfo(ctx).Result()
			text, err2 := client.ClusterNodes(ctx).Result()
			return err == nil && err2 == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d", clusterSlots)) &&
				strings.Count(text, "slave") == all-primaries && (i < primaries || linked(ctx, client))
		})
	}
	return c
}

// Addresses are those of all nodes.
func (c *Cluster) Addresses() []string {
	all := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		all[i] = n.Addr()
	}
	return all
}

// URL is the Cluster in the form that direct.Open takes, the password included.
func (c *Cluster) URL() string {
	user := ""
	if c.options.Password != "" {
		user = ":" + c.options.Password + "@"
	}
	return "redis-cluster://" + user + strings.Join(c.Addresses(), ",")
}

// Nodes are the servers, whatever their roles.
func (c *Cluster) Nodes() []*Redis { return c.nodes }

// Primary is the server that has the slot of a key.
func (c *Cluster) Primary(key string) *Redis {
	c.t.Helper()
	var found *Redis
	within(c.t, "a node has the slot of "+key, func(ctx context.Context) bool {
		found = c.owner(ctx, key)
		return found != nil
	})
	return found
}

// AwaitPrimary returns the server that has the slot of a key as soon as it is another one than before, and says so itself.
func (c *Cluster) AwaitPrimary(key string, before *Redis) *Redis {
	c.t.Helper()
	var found *Redis
	within(c.t, "another node has the slot of "+key, func(ctx context.Context) bool {
		found = c.owner(ctx, key)
		return found != nil && found != before
	})
	return found
}

// owner asks each node whether the slot of a key is its own.
func (c *Cluster) owner(ctx context.Context, key string) *Redis {
	for i, client := range c.clients {
		if c.nodes[i].PID() == 0 {
			continue
		}
		// A node that does not have the slot, or is a replica, answers with MOVED.
		if err := client.Exists(ctx, key).Err(); err == nil {
			return c.nodes[i]
		}
	}
	return nil
}

// Failover makes the replica of the primary that has a key take over while that lives, and returns at once.
func (c *Cluster) Failover(key string) {
	c.t.Helper()
	replica := c.clients[c.index(c.Replica(key))]
	within(c.t, "the replica takes an order to take over", func(ctx context.Context) bool {
		return linked(ctx, replica) && replica.Do(ctx, "cluster", "failover").Err() == nil
	})
}

// Replica is the server that is the replica of the primary that has the slot of a key.
func (c *Cluster) Replica(key string) *Redis {
	c.t.Helper()
	primary := c.ids[c.index(c.Primary(key))]
	for i, client := range c.clients {
		if c.nodes[i].PID() == 0 {
			continue
		}
		text, err := client.ClusterNodes(context.Background()).Result()
		if err != nil {
			c.t.Fatalf("ask a node for the others: %v", err)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, "myself,slave "+primary) {
				return c.nodes[i]
			}
		}
	}
	c.t.Fatalf("no replica of the primary that has %s", key)
	return nil
}

// MoveSlot moves the slot of a key, and everything in it, to another primary, as redis-cli --cluster reshard does, and returns that.
func (c *Cluster) MoveSlot(key string) *Redis {
	c.t.Helper()
	from := c.index(c.Primary(key))
	to := -1
	for i, n := range c.nodes {
		if i != from && n.PID() != 0 && isPrimary(context.Background(), c.t, n) {
			to = i
			break
		}
	}
	if to < 0 {
		c.t.Fatalf("no other primary is there")
	}
	slot, err := c.clients[from].ClusterKeySlot(context.Background(), key).Result()
	if err != nil {
		c.t.Fatalf("ask for the slot of %s: %v", key, err)
	}
	tell(c.t, c.clients[to], "cluster", "setslot", slot, "importing", c.ids[from])
	tell(c.t, c.clients[from], "cluster", "setslot", slot, "migrating", c.ids[to])
	const atOnce, patience = 100, 5000
	for {
		keys, err := c.clients[from].ClusterGetKeysInSlot(context.Background(), int(slot), atOnce).Result()
		if err != nil {
			c.t.Fatalf("list the keys of slot %d: %v", slot, err)
		}
		if len(keys) == 0 {
			break
		}
		command := []any{"migrate", "127.0.0.1", c.nodes[to].port, "", 0, patience}
		if c.options.Password != "" {
			command = append(command, "auth", c.options.Password)
		}
		command = append(command, "keys")
		for _, k := range keys {
			command = append(command, k)
		}
		tell(c.t, c.clients[from], command...)
	}
	tell(c.t, c.clients[to], "cluster", "setslot", slot, "node", c.ids[to])
	tell(c.t, c.clients[from], "cluster", "setslot", slot, "node", c.ids[to])
	return c.nodes[to]
}

func (c *Cluster) index(r *Redis) int {
	for i, n := range c.nodes {
		if n == r {
			return i
		}
	}
	c.t.Fatalf("%s is no node of this Cluster", r.Addr())
	return -1
}
