// Package cache keeps answers for a while where all processes of the worker find them.
//
// It owns the places: memcached, a directory of files, or none. What an answer is and how long it holds is the caller's
// business. A cache may lose anything at any time; one that does not work is a cache that has nothing, and says why. It starts
// no goroutine.
//
// Why these two: a worker has no access to the manager's Redis. Where managers share the work there is a memcached already,
// for the locks, and it forgets by itself what is old. On one machine files need no server and no lock: an answer is written
// beside its place and renamed into it, so that a reader sees the old one, the new one, or none.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"time"
)

// Cache is one place. Its methods may be called from many goroutines and processes at once.
type Cache interface {
	// Get returns the value that was put under key and has not expired. The error says that the cache could not be asked.
	Get(ctx context.Context, key string) (value []byte, ok bool, err error)
	// Put keeps value for ttl, at most. The error says that it is not kept.
	Put(ctx context.Context, key string, value []byte, ttl time.Duration) error
	// Close gives connections back.
	Close() error
}

// DefaultAddress is the cache that is used when none is named.
const DefaultAddress = "dir:var/discovery"

// MaxValue is how many bytes a value may have; memcached takes no more.
const MaxValue = 1 << 20

// Open opens the cache at an address: "memcached:HOST:PORT" with more servers after commas, "dir:PATH", or "off".
func Open(address string) (Cache, error) {
	kind, rest, _ := strings.Cut(address, ":")
	switch {
	case address == "off":
		return nothing{}, nil
	case kind == "memcached" && rest != "":
		servers := strings.Split(rest, ",")
		for i, server := range servers {
			servers[i] = strings.TrimSpace(server)
			if _, _, err := net.SplitHostPort(servers[i]); err != nil && !strings.HasPrefix(servers[i], "/") {
				return nil, fmt.Errorf("the cache %q: %q is not a server; write it like \"memcached:127.0.0.1:11211\"", address, servers[i])
			}
		}
		return newMemcached(servers), nil
	case kind == "dir" && rest != "":
		return newFiles(rest)
	}
	return nil, fmt.Errorf("the cache %q is not known: write \"memcached:127.0.0.1:11211\", %q or \"off\"", address, DefaultAddress)
}

// hash makes a name of any key that every place accepts.
func hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// nothing is the cache that is off.
type nothing struct{}

func (nothing) Get(context.Context, string) ([]byte, bool, error)        { return nil, false, nil }
func (nothing) Put(context.Context, string, []byte, time.Duration) error { return nil }
func (nothing) Close() error                                             { return nil }
