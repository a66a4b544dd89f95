// Package clienttest holds the promises of client.Client as tests, for every transport.
//
// It owns the tests and nothing they run against: the caller brings a client that is connected to a live system, in
// which a queue is served by the worker plugins/sdk/sdktest/misbehave, or by what stands in for it. The tests share the
// system with each other and with others, so they use payloads that nobody else has. They are called from _test.go files.
package clienttest

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// Env is what one test works with.
type Env struct {
	// Client is connected, belongs to the test and may be closed by it; whoever made it closes it again in the end.
	Client client.Client
	// Queue is served by misbehave: payloads {"do": ..., "value": ..., "note": ..., "ms": ...}. It must run four tasks at once, and
	// retry a failed one within a few seconds and for a few times only.
	Queue string
	// Slow is how much longer than on an idle machine things may take; 0 is 1.
	Slow int
}

// Payload is what misbehave obeys.
type Payload struct {
	Do    string `json:"do"`
	Value any    `json:"value,omitempty"` // returned
	Note  string `json:"note,omitempty"`  // what a failure or a panic says
	MS    int    `json:"ms,omitempty"`
}

// Run runs the whole suite. It calls setup once for each test, in parallel.
func Run(t *testing.T, setup func(t *testing.T) Env) {
	t.Helper()
	groups := []map[string]func(*suite){submitTests(), batchTests(), endTests(), subscribeTests(), cancelTests(), closeTests()}
	for _, group := range groups {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := &suite{T: t, Env: setup(t)}
				s.Slow = max(1, s.Slow)
				test(s)
			})
		}
	}
}

// suite is one test at work.
type suite struct {
	*testing.T
	Env
}

// limit is the time in which everything that a test waits for must have happened.
func (t *suite) limit() context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(t.Slow)*20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// nonce is a text that no other test has.
func nonce() string { return rand.Text() }

// submit submits and fails the test when that fails.
func (t *suite) submit(ctx context.Context, p Payload, options ...client.Option) client.Submitted {
	t.Helper()
	s, err := t.Client.Submit(ctx, t.Queue, p, options...)
	if err != nil {
		t.Fatalf("submit %.200s: %.500v", fmt.Sprintf("%+v", p), err)
	}
	return s
}

// wait waits for one task and fails the test when that fails.
func (t *suite) wait(ctx context.Context, id task.ID) *task.Task {
	t.Helper()
	ended, err := client.Wait(ctx, t.Client, id)
	if err != nil {
		t.Fatalf("wait for %s: %v", id, err)
	}
	if ended.ID != id {
		t.Fatalf("waited for %s, got %s", id, ended.ID)
	}
	return ended
}

// until polls the task until its state is the one wanted.
func (t *suite) until(ctx context.Context, id task.ID, wanted task.State) {
	t.Helper()
	t.untilIt(ctx, id, "became "+wanted.String(), func(now *task.Task) bool { return now.State == wanted })
}

// untilIt polls the task until it is as wanted.
func (t *suite) untilIt(ctx context.Context, id task.ID, what string, is func(*task.Task) bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := t.Client.Get(ctx, id)
		if err != nil {
			t.Fatalf("get %s: %v", id, err)
		}
		if is(got) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("task %s is %s and never %s", id, got.State, what)
		case <-tick.C:
		}
	}
}

// collect reads a subscription to its end and returns the updates by ID, the events apart.
func collect(ctx context.Context, c client.Client, ids []task.ID, options ...client.FollowOption) (map[task.ID]client.Update, []*task.Event, error) {
	ends := map[task.ID]client.Update{}
	var events []*task.Event
	for u, err := range c.Subscribe(ctx, ids, options...) {
		switch {
		case err != nil:
			return ends, events, err
		case u.Event != nil:
			events = append(events, u.Event)
		case u.Unknown == (u.Ended != nil):
			return ends, events, fmt.Errorf("update %+v says both or neither of unknown and ended", u)
		default:
			if _, twice := ends[u.ID]; twice {
				return ends, events, fmt.Errorf("task %s ended twice", u.ID)
			}
			ends[u.ID] = u
		}
	}
	return ends, events, nil
}
