package direct_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/drover-jobs/drover/protocol/client/clienttest/standin"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
)

const modelQueue = "q"

// world is one interleaving: a Redis, one client whose way to it breaks, those who wait through that client, and a manager in
// miniature whose own way is sound. Everything is in one bubble, in which time passes only when all goroutines wait.
type world struct {
	t      *testing.T
	random *rand.Rand
	server *miniredis.Miniredis
	wire   *wire
	rdb    *redis.Client // of the manager in miniature
	client *direct.Client
	steps  []string // what was done, for people

	mu      sync.Mutex
	clock   int // counts what happens; a step and an update each have a number
	tasks   []*subject
	waiters []*waiter
	running sync.WaitGroup
	began   time.Time
	state   wireState // of the wire
	deaf    bool      // it was mute since it was last sound
	soundAt time.Time // from when on everybody is told at once what happens
}

// newWorld must be called in a bubble.
func newWorld(t *testing.T, random *rand.Rand) *world {
	t.Helper()
	w := &world{t: t, random: random, server: miniredis.NewMiniRedis(), began: time.Now(), soundAt: time.Now()}
	if err := w.server.Start(); err != nil {
		t.Fatal(err)
	}
	w.server.Server().Close() // of its real socket only: connections are brought to it below
	w.wire = newWire(w.server.Server().ServeConn)
	steady := newWire(w.server.Server().ServeConn)
	w.rdb = inMemory(steady.dial)
	standin.Start(t, w.rdb, modelQueue, standin.Options{Idle: true})
	w.client = direct.New(inMemory(w.wire.dial), quiet())
	for i := range 3 {
		w.tasks = append(w.tasks, &subject{payload: map[string]any{"do": "return", "value": i}})
	}
	return w
}

func inMemory(dial func(context.Context, string, string) (net.Conn, error)) *redis.Client {
	return redis.NewClient(&redis.Options{
		Dialer: dial, ContextTimeoutEnabled: true, DialerRetries: 1, PoolSize: 64, Protocol: 2, DisableIdentity: true,
		MaxRetries:               -1, // see wireEnd.Write
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// note remembers a step and gives it its number.
func (w *world) note(format string, args ...any) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock++
	w.steps = append(w.steps, fmt.Sprintf("%4d %9s  ", w.clock, time.Since(w.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
	return w.clock
}

// failed reports what is wrong, once with everything that was done before.
func (w *world) failed(format string, args ...any) {
	w.t.Helper()
	if !w.t.Failed() {
		for _, s := range w.steps {
			w.t.Log(s)
		}
	}
	w.t.Errorf(format, args...)
}

// atomically carries out commands at one moment, as the scripts of a manager do.
func (w *world) atomically(do func(redis.Pipeliner)) {
	w.t.Helper()
	if _, err := w.rdb.TxPipelined(w.t.Context(), func(p redis.Pipeliner) error { do(p); return nil }); err != nil {
		w.t.Fatalf("the manager in miniature: %v", err)
	}
}

// finish mends everything, ends every task, and wants everybody to be told in the time in which the promises say so.
func (w *world) finish() {
	w.t.Helper()
	w.become(sound)
	w.note("all is sound again")
	time.Sleep(time.Until(w.soundAt)) //nolint:forbidigo // in a bubble
	for _, s := range w.tasks {
		if s.state == living {
			w.end(s, task.Completed, true)
		}
	}
	time.Sleep(told) //nolint:forbidigo // in a bubble
	synctest.Wait()
	w.mu.Lock()
	for _, r := range w.waiters {
		if !r.over {
			w.failed("waiter %d still waits for %d of its %d tasks %s after all had ended", r.number, len(r.ids)-len(r.got), len(r.ids), told)
			r.cancel()
		}
	}
	w.mu.Unlock()
	w.running.Wait()
	for _, r := range w.waiters {
		w.judge(r)
	}
	if err := w.client.Close(); err != nil {
		w.failed("close: %v", err)
	}
	_ = w.rdb.Close()
	w.server.Close()
}

// become changes the wire. Who waits may learn late what happens from now on, and what happened just before.
func (w *world) become(state wireState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wire.become(state)
	w.deaf = w.deaf || state == mute
	now := time.Now()
	switch {
	case state != sound:
		w.soundAt = now.Add(time.Hour)
	case w.state == sound:
	case w.deaf:
		w.soundAt, w.deaf = now.Add(undeafened), false
	default:
		w.soundAt = now.Add(reconnected)
	}
	w.state = state
	w.unsettle()
}

// breakAll breaks the connections that there are.
func (w *world) breakAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wire.breakAll()
	if at := time.Now().Add(reconnected); at.After(w.soundAt) {
		w.soundAt = at
	}
	w.unsettle()
}

// unsettle notes that events may be lost. The caller holds mu.
func (w *world) unsettle() {
	for _, r := range w.waiters {
		r.stands = false
		clear(r.owed)
	}
}

// settle lets everybody do what there is to do. Whoever waits then stands, if the wire is sound.
func (w *world) settle() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.waiters {
		r.stands = r.stands || w.state == sound && !time.Now().Before(w.soundAt)
	}
}

// Bounds of what the client promises, in the time of the bubble.
const (
	// reconnected is how long after a connection was broken, or can be made again, a client may take to have a new one and to
	// have looked at what it missed: reconnectLast and retryLast, and a command that was under way.
	reconnected = 5 * time.Second
	// undeafened is the same after connections went silent without breaking: twice healthEvery to find it out, and reconnected;
	// commands on such connections run into their time-out of three seconds, one connection after the other.
	undeafened = 10*time.Second + 2*reconnected
	// promptly is how long after the end of a task, while all is sound, everybody has been told: the grace of a task without a record.
	promptly = 400 * time.Millisecond
	// slowest is how long a slow reader takes over one update.
	slowest = 2 * time.Second
	// told is when everybody has been told of everything.
	told = promptly + 3*slowest
)
