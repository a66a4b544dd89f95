package broker

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// publishes are how a script writes the command that publishes.
var publishes = []string{`'PUBLISH'`, `"PUBLISH"`} //nolint:gochecknoglobals // never written

// sharded is the command in a Cluster: the node that runs the script says by its version what it has. Redis 7.0 is the first with
// sharded channels, and the first that tells scripts a version.
const sharded = `(redis.REDIS_VERSION_NUM and "SPUBLISH" or "PUBLISH")`

// Source is a script's text for the Redis of a client. A script that publishes writes 'PUBLISH', and its channels have the hash tag of
// its keys.
func Source(rdb redis.UniversalClient, source string) string {
	if !IsCluster(rdb) {
		return source
	}
	for _, p := range publishes {
		source = strings.ReplaceAll(source, p, sharded)
	}
	return source
}

// Script makes a script for the Redis of a client: see Source.
func Script(rdb redis.UniversalClient, source string) *redis.Script {
	return redis.NewScript(Source(rdb, source))
}

// publishSource publishes. KEYS[1] the channel, so that the node of its slot runs it; ARGV[1] the message.
const publishSource = `return redis.call('PUBLISH', KEYS[1], ARGV[1])`

// Publish sends a message on a channel.
func Publish(ctx context.Context, rdb redis.UniversalClient, channel string, message any) error {
	if !IsCluster(rdb) {
		return rdb.Publish(ctx, channel, message).Err()
	}
	return Script(rdb, publishSource).Run(ctx, rdb, []string{channel}, message).Err()
}
