// Package news tells whoever watches the manager what happens, as it happens.
//
// It owns the mailboxes of those who watch, which are bounded: who reads too slowly misses the oldest and is told how many;
// nobody is ever waited for. It owns one connection to Redis for the events of tasks, of all queues and managers, which exists
// only while somebody watches. It does not own what happens: the stages of the manager tell it, through package orchestrator.
//
// Run keeps the connection until its context ends. Tell and Follow may be called at any time, by any goroutine.
package news

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// kept is how many messages wait for one follower at most.
const kept = 4096

// Hub is where news come in, and who wants them.
type Hub struct {
	rdb  redis.UniversalClient
	log  *slog.Logger
	kick chan struct{} // has an element when the connection may have to come or go

	mu        sync.Mutex
	followers map[*Follower]struct{}
	ready     chan struct{} // closed when the connection stands, or Redis is known to be away
}

// New returns a hub that nobody follows.
func New(rdb redis.UniversalClient, log *slog.Logger) *Hub {
	return &Hub{rdb: rdb, log: log, kick: make(chan struct{}, 1), followers: map[*Follower]struct{}{}, ready: make(chan struct{})}
}

// Watched reports whether anybody follows.
func (h *Hub) Watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.followers) > 0
}

// Tell hands a message to all who want it. It never blocks. Nobody may change the message afterwards.
func (h *Hub) Tell(m *apiv1.WatchResponse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.followers {
		if f.wants(m) {
			f.put(m)
		}
	}
}

// Filter says what a follower wants: of one queue, of one task; the zero value is everything.
type Filter struct {
	Queue string
	// Task is a task's ID as text.
	Task string
}

// wants reports whether a message is one of those.
func (f Filter) wants(m *apiv1.WatchResponse) bool {
	switch happened := m.GetHappened().(type) {
	case *apiv1.WatchResponse_Task:
		id := happened.Task.GetId()
		if f.Task != "" {
			return id == f.Task
		}
		return f.Queue == "" || len(id) > len(f.Queue) && id[:len(f.Queue)] == f.Queue && id[len(f.Queue)] == ':'
	case *apiv1.WatchResponse_Worker:
		return f.Task == "" && (f.Queue == "" || happened.Worker.GetQueue() == f.Queue)
	case *apiv1.WatchResponse_Queue:
		queue := happened.Queue.GetQueue()
		return queue == "" && happened.Queue.GetEvent() != "settings" || f.Task == "" && (f.Queue == "" || queue == f.Queue)
	default:
		return false
	}
}

// Follower is one who watches.
type Follower struct {
	Filter
	hub    *Hub
	more   chan struct{} // has an element when there may be something to read
	mail   []*apiv1.WatchResponse
	first  int // of the oldest in mail, which is a ring once it is full
	missed int64
}

// Follow returns a follower that misses nothing that is told from now on, and returns when events of tasks come as well or
// Redis is known to be away, or ctx ends. It must be closed.
func (h *Hub) Follow(ctx context.Context, filter Filter) *Follower {
	f := &Follower{Filter: filter, hub: h, more: make(chan struct{}, 1)}
	h.mu.Lock()
	h.followers[f] = struct{}{}
	ready := h.ready
	h.mu.Unlock()
	h.wake()
	select {
	case <-ready:
	case <-ctx.Done():
	}
	return f
}

// Close ends the following.
func (f *Follower) Close() {
	f.hub.mu.Lock()
	delete(f.hub.followers, f)
	f.hub.mu.Unlock()
	f.hub.wake()
}

func (h *Hub) wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// put puts a message in, over the oldest when there is no room. The caller holds the hub's mu.
func (f *Follower) put(m *apiv1.WatchResponse) {
	if len(f.mail) < kept {
		f.mail = append(f.mail, m)
	} else {
		f.mail[f.first] = m
		f.first = (f.first + 1) % kept
		f.missed++
	}
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// Next waits for news and returns them, in order; first of all how many were missed, if any were. The error is why ctx ended.
func (f *Follower) Next(ctx context.Context) ([]*apiv1.WatchResponse, error) {
	for {
		if batch := f.take(); len(batch) > 0 {
			return batch, nil
		}
		select {
		case <-f.more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (f *Follower) take() []*apiv1.WatchResponse {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	if len(f.mail) == 0 {
		return nil
	}
	batch := make([]*apiv1.WatchResponse, 0, len(f.mail)+1)
	if f.missed > 0 {
		batch = append(batch, &apiv1.WatchResponse{AtMs: time.Now().UnixMilli(), Happened: &apiv1.WatchResponse_Missed{Missed: f.missed}})
	}
	batch = append(append(batch, f.mail[f.first:]...), f.mail[:f.first]...)
	f.mail, f.first, f.missed = nil, 0, 0
	return batch
}
