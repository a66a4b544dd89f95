package direct

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	topicLinger    = 10 * time.Second        // how long a topic without followers stays subscribed
	healthEvery    = 5 * time.Second         // a connection that is silent for two beats is given up
	reconnectFirst = 50 * time.Millisecond   // pause before the first new connection
	reconnectLast  = 2000 * time.Millisecond // and before later ones
)

var errSilent = errors.New("no answer from Redis on the connection for events")

// run keeps one connection for events until ctx ends.
func (h *hub) run(ctx context.Context) {
	pause, away := reconnectFirst, false
	for {
		err := h.session(ctx, func() {
			if away {
				h.log.Info("Redis sends events again")
			}
			pause, away = reconnectFirst, false
		})
		if ctx.Err() != nil {
			return
		}
		if !away {
			away = true
			h.log.Warn("the connection for events is lost; subscriptions go on when Redis is back", "error", err)
		}
		h.forgetSession()
		h.lookAll()
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-h.kick: // somebody new is there, and wants to know at once whether Redis is
			timer.Stop()
		}
		pause = min(2*pause, reconnectLast)
	}
}

// session runs one connection: it receives in this goroutine and writes in another. It returns when the connection
// fails or ctx ends; up is called when the first subscription stands.
func (h *hub) session(ctx context.Context, up func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ps := h.rdb.Subscribe(ctx)
	var heard atomic.Bool
	var keeper sync.WaitGroup
	keeper.Go(func() {
		cancel(h.keep(ctx, ps, &heard))
		_ = ps.Close() // wakes the receiver, which reads without a deadline
	})
	defer keeper.Wait()
	for {
		message, err := ps.Receive(ctx)
		if err != nil {
			cancel(err)
			return context.Cause(ctx)
		}
		heard.Store(true)
		switch m := message.(type) {
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				up()
				h.confirm(m.Channel)
			}
		case *redis.Message:
			h.deliver(m.Channel, []byte(m.Payload))
		}
	}
}

// keep subscribes what is wanted, leaves what is not, and finds out when the connection is dead, until ctx ends.
func (h *hub) keep(ctx context.Context, ps *redis.PubSub, heard *atomic.Bool) error {
	beat := time.NewTicker(healthEvery)
	defer beat.Stop()
	for asked := false; ; {
		add, drop := h.changes(time.Now(), topicLinger)
		if len(drop) > 0 {
			if err := ps.Unsubscribe(ctx, drop...); err != nil {
				return err
			}
		}
		if len(add) > 0 {
			if err := ps.Subscribe(ctx, add...); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.kick:
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
