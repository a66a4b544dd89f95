package news

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	healthEvery    = 2 * time.Second        // a connection that is silent for two beats is given up
	patience       = 500 * time.Millisecond // how long a follower waits for the connection to stand
	leaveAfter     = 200 * time.Millisecond // how long a stop waits for a call to Redis
	reconnectFirst = 50 * time.Millisecond
	reconnectLast  = 2 * time.Second
)

var errSilent = errors.New("no answer from Redis on the connection for events")

// Run receives the events of tasks while somebody follows, until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.kick:
		}
		if h.Watched() {
			h.connect(ctx)
		}
	}
}

// connect keeps a connection until nobody follows any more or ctx ends. While Redis is away those who follow are told so once.
func (h *Hub) connect(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := time.AfterFunc(patience, h.settle)
	defer known.Stop()
	pause, away := reconnectFirst, false
	for ctx.Err() == nil && !h.unwatched() {
		err := h.bounded(ctx, func() {
			if away {
				h.Tell(ofManager("broker-back", "Redis sends events of tasks again; those of the meantime are not known"))
			}
			pause, away = reconnectFirst, false
			h.settle()
		})
		if ctx.Err() != nil || err == nil {
			return
		}
		if !away {
			away = true
			h.Tell(ofManager("broker-away", "Redis does not answer, so events of tasks are missed: "+err.Error()))
		}
		h.settle()
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, reconnectLast)
	}
}

// settle lets followers go on: the connection stands, or it is known that it does not.
func (h *Hub) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.ready:
	default:
		close(h.ready)
	}
}

// unwatched reports whether nobody follows. The next follower then waits for a connection of its own.
func (h *Hub) unwatched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.followers) > 0 {
		return false
	}
	select {
	case <-h.ready:
		h.ready = make(chan struct{})
	default:
	}
	return true
}

// bounded runs a session, but does not wait for one that hangs in a call to Redis once ctx has ended: it ends with the client.
func (h *Hub) bounded(ctx context.Context, up func()) error {
	ended := make(chan error, 1)
	go func() { ended <- h.session(ctx, up) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(leaveAfter)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return ctx.Err()
	}
}

// session runs one connection until it fails, ctx ends, or nobody follows any more, which is no error. up is called when it
// stands. It receives in this goroutine, and watches over the connection in another.
func (h *Hub) session(ctx context.Context, up func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The events of all queues: braces mean nothing in a pattern of Redis.
	ps := h.rdb.PSubscribe(ctx, task.KeysOf("*").EventsChannel())
	var heard atomic.Bool
	var keeper sync.WaitGroup
	keeper.Go(func() {
		cancel(h.keep(ctx, ps, &heard))
		_ = ps.Close() // wakes the receiver
	})
	defer keeper.Wait()
	for {
		message, err := ps.Receive(ctx)
		if err != nil {
			cancel(err)
			if cause := context.Cause(ctx); !errors.Is(cause, errUnwatched) {
				return cause
			}
			return nil
		}
		heard.Store(true)
		switch m := message.(type) {
		case *redis.Subscription:
			up()
		case *redis.Message:
			h.deliver(m.Payload)
		}
	}
}

var errUnwatched = errors.New("nobody watches")

// keep returns when nobody follows any more, or the connection is dead.
func (h *Hub) keep(ctx context.Context, ps *redis.PubSub, heard *atomic.Bool) error {
	beat := time.NewTicker(healthEvery)
	defer beat.Stop()
	for asked := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.kick:
			if h.unwatched() {
				return errUnwatched
			}
		case <-beat.C:
			if asked && !heard.Load() {
				return errSilent
			}
			asked = true
			heard.Store(false)
			if err := ps.Ping(ctx); err != nil {
				return err
			}
		}
	}
}

// deliver tells what a message of a queue's event channel says.
func (h *Hub) deliver(payload string) {
	events, err := task.DecodeEvents([]byte(payload))
	if err != nil {
		h.log.Debug("a message on the channel of events cannot be read", "error", err)
		return
	}
	for _, e := range events {
		h.Tell(&apiv1.WatchResponse{AtMs: e.At.UnixMilli(), Happened: &apiv1.WatchResponse_Task{Task: e.Proto()}})
	}
}

// ofManager is an event of the manager itself.
func ofManager(event, text string) *apiv1.WatchResponse {
	return &apiv1.WatchResponse{AtMs: time.Now().UnixMilli(), Happened: &apiv1.WatchResponse_Queue{Queue: &apiv1.QueueEvent{Event: event, Text: text}}}
}
