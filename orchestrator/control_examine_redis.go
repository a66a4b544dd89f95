package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// redisServer is what INFO says of a server that takes writes.
type redisServer struct {
	address string
	info    map[string]string
}

// primaries asks every server that takes writes: all primaries of a Cluster, else the one. An error says that one does not answer.
func (o *Orchestrator) primaries(ctx context.Context) ([]redisServer, error) {
	ask := func(ctx context.Context, c redis.UniversalClient, address string) (redisServer, error) {
		text, err := c.Info(ctx, "server", "memory", "persistence", "replication").Result()
		return redisServer{address, infoOf(text)}, err
	}
	c, is := o.redis.(*redis.ClusterClient)
	if !is {
		s, err := ask(ctx, o.redis, o.brokerName())
		return []redisServer{s}, err
	}
	var mu sync.Mutex
	var all []redisServer
	err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		s, err := ask(ctx, node, node.Options().Addr)
		if err != nil {
			return fmt.Errorf("%s: %w", node.Options().Addr, err)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return nil
	})
	slices.SortFunc(all, func(a, b redisServer) int { return strings.Compare(a.address, b.address) })
	return all, err
}

// redisServers judges each server, and tells of each check the worst.
func (e *examination) redisServers(servers []redisServer) {
	badness := map[string]int{wellFound: 0, doubtFound: 1, badFound: 2}
	var worst *examination
	for i, s := range servers {
		part := &examination{o: e.o}
		part.redisServer(s)
		if i == 0 {
			worst = part
			continue
		}
		for n, f := range part.findings {
			if badness[f.GetVerdict()] > badness[worst.findings[n].GetVerdict()] {
				f.Found = s.address + ": " + f.GetFound()
				worst.findings[n] = f
			}
		}
	}
	if worst != nil {
		e.findings = append(e.findings, worst.findings...)
	}
}

// redisServer judges one server: the same checks for each.
func (e *examination) redisServer(s redisServer) {
	e.redisVersion(s.info["redis_version"])
	e.redisMemory(s.info)
	e.redisPersistence(s.info)
	e.redisReplicas(s.info)
}

// redisReplicas counts the replicas where there should be some.
func (e *examination) redisReplicas(info map[string]string) {
	if role := info["role"]; role != "master" && role != "" {
		e.add("Redis replicas", badFound, "point redis.address at the primary", "this server is a %s and takes no writes", role)
		return
	}
	replicas, _ := strconv.Atoi(info["connected_slaves"])
	switch want := e.o.config.Redis.WaitReplicas; {
	case replicas < want:
		e.add("Redis replicas", badFound, "start more, or lower redis.wait_replicas: submits through this manager are refused", "%d are connected, and redis.wait_replicas is %d", replicas, want)
	case replicas == 0 && several(e.o.config.Redis.Address):
		e.add("Redis replicas", doubtFound, "start one: nobody can take over when this server dies", "none is connected")
	default:
		e.add("Redis replicas", wellFound, "", "%d are connected", replicas)
	}
}

// redisSet judges what stands around the servers.
func (e *examination) redisSet(ctx context.Context) {
	options, err := e.o.config.Redis.options()
	switch {
	case err != nil: // the files of the passwords have changed since the start
		e.add("Redis password", doubtFound, "mend the file before the next start", "%v", err)
	case options.Cluster != nil:
		e.redisCluster(ctx)
	case options.Sentinel != nil:
		e.sentinels(ctx, options.Sentinel)
	}
}

// redisCluster says whether all slots are served.
func (e *examination) redisCluster(ctx context.Context) {
	text, err := e.o.redis.(*redis.ClusterClient).ClusterInfo(ctx).Result()
	info := infoOf(text)
	switch {
	case err != nil:
		e.add("Redis Cluster", badFound, "look at its nodes", "it does not say how it is: %v", err)
	case info["cluster_state"] != "ok" || info["cluster_slots_ok"] != info["cluster_slots_assigned"]:
		e.add("Redis Cluster", badFound, "look at its nodes with redis-cli --cluster check; queues whose slot nobody serves stand still", "its state is %s, with %s of %s slots served",
			info["cluster_state"], info["cluster_slots_ok"], info["cluster_slots_assigned"])
	default:
		e.add("Redis Cluster", wellFound, "", "all slots are served, by %s primaries", info["cluster_size"])
	}
}

// sentinels asks each sentinel whether enough of them could replace the primary.
func (e *examination) sentinels(ctx context.Context, o *redis.FailoverOptions) {
	sound, last := 0, error(nil)
	for _, address := range o.SentinelAddrs {
		c := redis.NewSentinelClient(&redis.Options{
			Addr: address, Username: o.SentinelUsername, Password: o.SentinelPassword, TLSConfig: o.TLSConfig, DialerRetries: 1, ContextTimeoutEnabled: true,
		})
		if err := c.CkQuorum(ctx, o.MasterName).Err(); err != nil {
			last = fmt.Errorf("%s: %w", address, err)
		} else {
			sound++
		}
		_ = c.Close()
	}
	switch all := len(o.SentinelAddrs); {
	case sound == all:
		e.add("Redis Sentinel", wellFound, "", "%d sentinels agree on %s", sound, o.MasterName)
	case sound > all/2:
		e.add("Redis Sentinel", doubtFound, "look after it", "%d of %d sentinels are well: %v", sound, all, last)
	default:
		e.add("Redis Sentinel", badFound, "start more sentinels: nobody replaces a primary that dies", "%d of %d sentinels are well: %v", sound, all, last)
	}
}

// infoOf reads the answer of INFO.
func infoOf(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// leastRedis is the oldest version with all commands that are used (ZRANGE BYSCORE, LPOS, SET GET).
var leastRedis = [2]int{6, 2} //nolint:gochecknoglobals // never written

func (e *examination) redisVersion(version string) {
	parts := strings.SplitN(version, ".", 3)
	var got [2]int
	for i := range min(len(parts), len(got)) {
		got[i], _ = strconv.Atoi(parts[i]) // one that cannot be read is 0
	}
	if got[0] < leastRedis[0] || got[0] == leastRedis[0] && got[1] < leastRedis[1] {
		e.add("Redis version", badFound, fmt.Sprintf("update it to %d.%d or later", leastRedis[0], leastRedis[1]), "%s", version)
		return
	}
	e.add("Redis version", wellFound, "", "%s", version)
}

func (e *examination) redisMemory(info map[string]string) {
	if policy := info["maxmemory_policy"]; policy != "noeviction" && info["maxmemory"] != "0" {
		e.add("Redis eviction", badFound, "set maxmemory-policy noeviction, or tasks disappear when memory is short", "maxmemory-policy is %s", policy)
	} else if policy != "noeviction" && policy != "" {
		e.add("Redis eviction", doubtFound, "set maxmemory-policy noeviction before somebody sets maxmemory", "maxmemory-policy is %s; it does nothing while maxmemory is not set", policy)
	} else {
		e.add("Redis eviction", wellFound, "", "noeviction")
	}
	used, _ := strconv.ParseInt(info["used_memory"], 10, 64)
	most, _ := strconv.ParseInt(info["maxmemory"], 10, 64)
	const nearly = 0.85
	if most > 0 && float64(used) > nearly*float64(most) {
		e.add("Redis memory", badFound, "raise maxmemory, lower retention, or drop dead letters", "%s of %s are used", settings.Bytes(used), settings.Bytes(most))
		return
	}
	e.add("Redis memory", wellFound, "", "%.1f MiB used", float64(used)/float64(settings.MiB))
}

func (e *examination) redisPersistence(info map[string]string) {
	switch {
	case info["aof_enabled"] == "1" && info["aof_last_write_status"] == "err":
		e.add("Redis persistence", badFound, "look at the log of Redis and at its disk", "the append-only file cannot be written")
	case info["aof_enabled"] == "1":
		e.add("Redis persistence", wellFound, "", "append-only file")
	case info["rdb_last_bgsave_status"] == "err":
		e.add("Redis persistence", badFound, "look at the log of Redis and at its disk", "the last snapshot could not be written")
	default:
		e.add("Redis persistence", doubtFound, "set appendonly yes", "snapshots only: a crash of Redis loses what was submitted since the last one")
	}
}
