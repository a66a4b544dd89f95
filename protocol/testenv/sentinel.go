package testenv

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MasterName is what the sentinels call their primary.
const MasterName = "drover"

// SentinelOptions say how a set is started. The zero value has no passwords.
type SentinelOptions struct {
	// Password is that of the Redis servers, SentinelPassword that of the sentinels.
	Password, SentinelPassword string
}

// Sentinel is one primary with two replicas, watched by three sentinels. It belongs to one test, and its methods are not for several
// goroutines at once.
type Sentinel struct {
	t         testing.TB
	options   SentinelOptions
	nodes     []*Redis
	sentinels []*sentinel
}

// sentinel is one of those that watch.
type sentinel struct {
	server server
	port   int
	client *redis.Client
}

// StartSentinel starts a set and returns when every sentinel knows all the others and the replicas have caught up. Everything is killed when
// the test ends.
func StartSentinel(t testing.TB, options SentinelOptions) *Sentinel {
	t.Helper()
	const replicas, watchers = 2, 3
	s := &Sentinel{t: t, options: options}
	config := replicated()
	if options.Password != "" {
		config = append(config, "masterauth "+options.Password)
	}
	primary := StartRedis(t, RedisOptions{Password: options.Password, Config: config})
	s.nodes = append(s.nodes, primary)
	for range replicas {
		s.nodes = append(s.nodes, StartRedis(t, RedisOptions{
			Password: options.Password, Config: append(config[:len(config):len(config)], "replicaof 127.0.0.1 "+strconv.Itoa(primary.port)),
		}))
	}
	for _, n := range s.nodes[1:] {
		c := dial(t, n.Addr(), options.Password)
		within(t, "a replica has caught up", func(ctx context.Context) bool { return linked(ctx, c) })
	}
	for range watchers {
		s.sentinels = append(s.sentinels, s.watch(primary.port))
	}
	for _, w := range s.sentinels {
		within(t, "the sentinels know each other and the replicas", func(ctx context.Context) bool {
			seen := redis.NewMapStringStringCmd(ctx, "sentinel", "master", MasterName)
			err := w.client.Process(ctx, seen)
			info := seen.Val()
			return err == nil && info["num-slaves"] == strconv.Itoa(replicas) && info["num-other-sentinels"] == strconv.Itoa(watchers-1) && info["flags"] == "master"
		})
	}
	return s
}

// watch starts a sentinel.
func (s *Sentinel) watch(primary int) *sentinel {
	s.t.Helper()
	program := lookPath(s.t, "redis-server")
	w := &sentinel{}
	w.server = server{t: s.t, name: "redis-server --sentinel", dir: ShortDir(s.t)}
	path := filepath.Join(w.server.dir, "sentinel.conf")
	w.server.command = func() []string { return []string{program, path, "--sentinel"} }
	w.server.probe = func(pid int) (bool, error) {
		questions := "INFO server\r\nPING\r\nQUIT\r\n"
		if s.options.SentinelPassword != "" {
			questions = "AUTH " + s.options.SentinelPassword + "\r\n" + questions
		}
		return probe{network: "tcp", addr: loopback(w.port), questions: questions, pidMark: "process_id:", last: "+PONG"}.ask(pid)
	}
	w.server.launchAnywhere(func() {
		w.port = FreePort(s.t)
		lines := []string{
			"port " + strconv.Itoa(w.port), "bind 127.0.0.1", "dir " + w.server.dir,
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", MasterName, primary),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", MasterName, DownAfter.Milliseconds()),
			"sentinel failover-timeout " + MasterName + " 2000",
			"sentinel parallel-syncs " + MasterName + " 2",
		}
		if s.options.Password != "" {
			lines = append(lines, "sentinel auth-pass "+MasterName+" "+s.options.Password)
		}
		if s.options.SentinelPassword != "" {
			lines = append(lines, "requirepass "+s.options.SentinelPassword, "sentinel sentinel-pass "+s.options.SentinelPassword)
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			s.t.Fatalf("write the configuration of a sentinel: %v", err)
		}
	})
	w.client = dial(s.t, loopback(w.port), s.options.SentinelPassword)
	return w
}

// Addresses are those of the sentinels.
func (s *Sentinel) Addresses() []string {
	all := make([]string, len(s.sentinels))
	for i, w := range s.sentinels {
		all[i] = loopback(w.port)
	}
	return all
}

// URL is the set in the form that direct.Open takes, passwords included.
func (s *Sentinel) URL() string {
	user := ""
	if s.options.Password != "" {
		user = ":" + s.options.Password + "@"
	}
	query := url.Values{"master": {MasterName}}
	if s.options.SentinelPassword != "" {
		query.Set("sentinel_password", s.options.SentinelPassword)
	}
	return "redis-sentinel://" + user + strings.Join(s.Addresses(), ",") + "/0?" + query.Encode()
}

// Nodes are the Redis servers, whatever their roles.
func (s *Sentinel) Nodes() []*Redis { return s.nodes }

// Primary is the server that the sentinels call the primary.
func (s *Sentinel) Primary() *Redis {
	s.t.Helper()
	var found *Redis
	within(s.t, "a sentinel names the primary", func(ctx context.Context) bool {
		found = s.named(ctx)
		return found != nil
	})
	return found
}

// named asks one sentinel.
func (s *Sentinel) named(ctx context.Context) *Redis {
	answer := redis.NewStringSliceCmd(ctx, "sentinel", "get-master-addr-by-name", MasterName)
	if err := s.sentinels[0].client.Process(ctx, answer); err != nil || len(answer.Val()) != 2 {
		return nil
	}
	return byPort(s.nodes, net.JoinHostPort(answer.Val()[0], answer.Val()[1]))
}

// AwaitPrimary returns the primary as soon as it is another one than before, and takes writes.
func (s *Sentinel) AwaitPrimary(before *Redis) *Redis {
	s.t.Helper()
	var found *Redis
	within(s.t, "another server is the primary", func(ctx context.Context) bool {
		found = s.named(ctx)
		return found != nil && found != before && isPrimary(ctx, s.t, found)
	})
	return found
}

// Failover makes the sentinels promote a replica while the primary lives, as soon as they agree to it, and returns at once then.
func (s *Sentinel) Failover() {
	s.t.Helper()
	within(s.t, "the sentinels take an order to fail over", func(ctx context.Context) bool {
		return s.sentinels[0].client.Do(ctx, "sentinel", "failover", MasterName).Err() == nil
	})
}

// FreezeSentinels halts the sentinels; ThawSentinels lets them go on.
func (s *Sentinel) FreezeSentinels() {
	for _, w := range s.sentinels {
		w.server.signal(syscall.SIGSTOP)
	}
}

// ThawSentinels lets frozen sentinels go on.
func (s *Sentinel) ThawSentinels() {
	for _, w := range s.sentinels {
		w.server.signal(syscall.SIGCONT)
	}
}

// isPrimary asks a server for its role on a connection of its own.
func isPrimary(ctx context.Context, t testing.TB, r *Redis) bool {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.Addr(), Password: r.Password(), DialerRetries: 1, ContextTimeoutEnabled: true})
	defer func() { _ = c.Close() }()
	info, err := c.Info(ctx, "replication").Result()
	return err == nil && strings.Contains(info, "role:master")
}
