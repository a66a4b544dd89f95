package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

const (
	// memcachedTimeout bounds one call: an answer that takes longer is not worth waiting for.
	memcachedTimeout = 200 * time.Millisecond
	memcachedIdle    = 8
	// memcachedPrefix keeps the keys apart from the locks and from an older form of the values.
	memcachedPrefix = "drover:discovery:1:"
)

// memcached is the cache in memcached.
type memcached struct {
	client *memcache.Client
}

var _ Cache = (*memcached)(nil)

func newMemcached(servers []string) *memcached {
	client := memcache.New(servers...)
	client.Timeout = memcachedTimeout
	client.MaxIdleConns = memcachedIdle
	return &memcached{client: client}
}

func (m *memcached) Get(_ context.Context, key string) ([]byte, bool, error) {
	item, err := m.client.Get(memcachedPrefix + hash(key))
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("asking memcached: %w", err)
	}
	return item.Value, true, nil
}

func (m *memcached) Put(_ context.Context, key string, value []byte, ttl time.Duration) error {
	seconds := int32(min(max(ttl.Seconds(), 1), 30*24*3600)) // more would be taken for a date
	item := &memcache.Item{Key: memcachedPrefix + hash(key), Value: value, Expiration: seconds}
	if err := m.client.Set(item); err != nil {
		return fmt.Errorf("writing to memcached: %w", err)
	}
	return nil
}

func (m *memcached) Close() error { return m.client.Close() }
