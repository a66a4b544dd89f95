package lock

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// Store is where locks lie: Memcached or Redis. Every call returns within a bounded time, also when the server does not
// answer. An error means that it is not known whether the call was carried out. All calls may be repeated: a token
// that has a lock gets it again, and releasing what is gone is no error. A lock lives for at least ttl after the call that took
// or renewed it, and at most two seconds longer: servers keep time in whole seconds.
type Store interface {
	// Acquire takes a lock. When another token has it, held is false and current is its holder, as far as that can be read.
	Acquire(ctx context.Context, key Key, token Token, ttl time.Duration, holder Holder) (held bool, current Holder, err error)
	// Renew extends locks and returns what came of each, in their order.
	Renew(ctx context.Context, leases []Lease, ttl time.Duration) []Renewal
	// Release gives up a lock if the token has it, and leaves it alone if not.
	Release(ctx context.Context, key Key, token Token) error
}

var (
	_ Store = (*Memcached)(nil)
	_ Store = (*Redis)(nil)
)

// Token says whose lock it is. Every taking has one of its own.
type Token string

// NewToken returns a token that nobody else has.
func NewToken() Token { return Token(rand.Text()) }

// Lease is a lock and the token that has it.
type Lease struct {
	Key   Key
	Token Token
}

// Renewal is what came of one renewal: the lock is still the token's or is not, or that is not known and Err says why.
type Renewal struct {
	Still bool
	Err   error
}

// Holder is what a lock says of who has it.
type Holder struct {
	Task    task.ID   `json:"task"`
	Manager string    `json:"manager"`
	Since   time.Time `json:"since"` // by the clock of its manager
}

// encode returns what lies in a store: the token, by which scripts compare, a space, and the holder as JSON.
func encode(token Token, h Holder) []byte {
	text, err := json.Marshal(h)
	if err != nil {
		text = []byte("{}") // a task ID that cannot be written: the lock works without it
	}
	return append([]byte(string(token)+" "), text...)
}

// decode reads what lies in a store. A holder that cannot be read is zero.
func decode(value []byte) (Token, Holder) {
	token, text, _ := strings.Cut(string(value), " ")
	var h Holder
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		h = Holder{}
	}
	return Token(token), h
}

// margin is how much earlier than the store a holder stops believing: what a run has to end when its lock cannot be renewed.
func margin(ttl time.Duration) time.Duration { return ttl / 4 }

// killGrace is how long a run that has lost its lock gets to end by itself, and how long killing its process may take after that:
// together the margin.
func killGrace(ttl time.Duration) time.Duration { return margin(ttl) / 2 }

// same reports whether two readings are of one taking of a lock.
func (h Holder) same(other Holder) bool {
	return h.Task == other.Task && h.Manager == other.Manager && h.Since.Equal(other.Since)
}

// believed is how long a holder may believe in a lock, counted from before it was asked for.
func believed(ttl time.Duration) time.Duration { return ttl - margin(ttl) }
