package embedded

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// DefaultSnapshotEvery is how often the content is written when
// Options.SnapshotEvery is 0: the most that kill -9 can lose.
const DefaultSnapshotEvery = 2 * time.Second

// Options says where the broker keeps its content and how often it writes it.
type Options struct {
	// Dir is the state directory. It is created with mode 0700 when missing.
	Dir string
	// SnapshotEvery is the time between snapshots; 0 means DefaultSnapshotEvery.
	// Nothing is written when nothing changed.
	SnapshotEvery time.Duration
	// Volatile lists prefixes of keys that only say who is alive at the moment.
	// They are not kept, so that a heartbeat alone never causes a write and a
	// dead process does not look alive after a restart. nil means
	// DefaultVolatile(); an empty list keeps every key.
	Volatile []string
	// Log receives start, stop, damage and changes of the ability to write.
	Log *slog.Logger
}

// DefaultVolatile returns the keys in which asynq servers and schedulers announce themselves.
// They are rewritten every five seconds by each living one.
func DefaultVolatile() []string {
	return []string{"asynq:servers", "asynq:workers", "asynq:schedulers"}
}

// Broker is one embedded Redis. Build it with New, run it once with Run.
type Broker struct {
	dir      string
	every    time.Duration
	volatile []string
	log      *slog.Logger
	password string

	started atomic.Bool
	ready   chan struct{}
	address string // written once, before ready is closed

	mu    sync.Mutex // guards fault
	fault error

	// Set by Run before anything else runs.
	redis *miniredis.Miniredis
	hold  *holder
	gate  gate
	clock clock
	files files
	size  atomic.Int64 // bytes of the last snapshot, to make room for the next
	saved [32]byte     // fingerprint of the content on disk; only the saver and, after it, the end touch it
}

// New checks the options and chooses the password. It starts and touches nothing.
func New(o Options) (*Broker, error) {
	if o.Dir == "" {
		return nil, errors.New("embedded broker: no state directory given; name one in the configuration")
	}
	if o.SnapshotEvery < 0 {
		return nil, fmt.Errorf("embedded broker: snapshot interval %v is negative; use 0 for the default of %v", o.SnapshotEvery, DefaultSnapshotEvery)
	}
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = DefaultSnapshotEvery
	}
	if o.Volatile == nil {
		o.Volatile = DefaultVolatile()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Broker{
		dir:      o.Dir,
		every:    o.SnapshotEvery,
		volatile: o.Volatile,
		log:      o.Log,
		password: newSecret(),
		ready:    make(chan struct{}),
		files:    files{dir: o.Dir, log: o.Log},
	}, nil
}

// Ready is closed when the content is loaded and the address answers. It stays
// open for ever when Run returns before that.
func (b *Broker) Ready() <-chan struct{} { return b.ready }

// Address returns host:port on loopback, or "" before Ready.
func (b *Broker) Address() string {
	select {
	case <-b.ready:
		return b.address
	default:
		return ""
	}
}

// Password returns the password of the default user: 256 random bits in hex,
// new with every Broker.
func (b *Broker) Password() string { return b.password }

// Err returns why the content cannot be written at the moment, or nil. The
// broker serves and tries again meanwhile; a status page shows this.
func (b *Broker) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fault
}

// setErr notes the outcome of a write and logs when it differs from the last.
func (b *Broker) setErr(err error) {
	b.mu.Lock()
	was := b.fault
	b.fault = err
	b.mu.Unlock()
	switch {
	case err != nil && was == nil:
		b.log.Error("embedded broker: content is not being saved; a crash now loses work; free space or make the directory writable",
			"dir", b.dir, "error", err)
	case err == nil && was != nil:
		b.log.Info("embedded broker: content is being saved again", "dir", b.dir)
	}
}

// newSecret returns 256 random bits in hex. crypto/rand never fails: it ends the
// program when the system has no randomness.
func newSecret() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	return hex.EncodeToString(secret)
}

func sameSecret(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (b *Broker) isVolatile(key []byte) bool {
	for _, p := range b.volatile {
		if len(key) >= len(p) && string(key[:len(p)]) == p {
			return true
		}
	}
	return false
}
