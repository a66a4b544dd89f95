package broker

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// How long a client of Sentinel or a Cluster waits for a node that may have died. A failover takes seconds; what hangs on the dead
// node must not hang for longer than that.
const (
	dialTimeout = 2 * time.Second
	readTimeout = 2 * time.Second
	// stateAge is from when on a client asks again which node has which slots. go-redis does so by itself when a node says that it has a
	// slot no more; a node that is dead says nothing.
	stateAge = time.Second
)

// Open makes a client, which connects when it is first used. Every call heeds the deadline of its context.
func (o *Options) Open() redis.UniversalClient {
	// Of Redis Enterprise; a handshake that other servers refuse.
	quiet := func() *maintnotifications.Config {
		return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
	switch {
	case o.Sentinel != nil:
		s := *o.Sentinel
		s.ContextTimeoutEnabled, s.DialerRetries = true, 1
		s.DialTimeout, s.ReadTimeout, s.WriteTimeout = dialTimeout, readTimeout, readTimeout
		return redis.NewFailoverClient(&s)
	case o.Cluster != nil:
		c := *o.Cluster
		c.ContextTimeoutEnabled, c.DialerRetries = true, 1
		c.DialTimeout, c.ReadTimeout, c.WriteTimeout = dialTimeout, readTimeout, readTimeout
		c.ClusterStateReloadInterval = stateAge
		c.MaintNotificationsConfig = quiet()
		return redis.NewClusterClient(&c)
	default:
		s := *o.Single
		s.ContextTimeoutEnabled = true
		s.MaintNotificationsConfig = quiet()
		return redis.NewClient(&s)
	}
}

// IsCluster reports whether a client is one of a Cluster.
func IsCluster(rdb redis.UniversalClient) bool {
	_, is := rdb.(*redis.ClusterClient)
	return is
}
