package intake

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/task"
)

// announceEvery is how often the entries of the queues are written again, should somebody have flushed Redis.
const announceEvery = time.Minute

// announceTimeout bounds one announcement. It is short, because a stop waits for the one in progress.
const announceTimeout = time.Second

// announce keeps the entries of the queues in Redis.
func (in *Intake) announce(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := in.Announce(ctx); err != nil {
			in.health.announced(err)
			timer.Reset(time.Second)
			continue
		}
		timer.Reset(announceEvery)
	}
}

// Announce writes the entries of the queues to Redis, so that clients know them. Run repeats it; call it after queues were added to
// have them there before the first task. Queues that are being left are announced no more; what was said of them stays, because
// others may serve them, and their tasks wait for somebody who does.
func (in *Intake) Announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	_, err := in.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, l := range in.all() {
			if l.closing() {
				continue
			}
			entry := l.Entry()
			encoded, err := task.EncodeEntry(entry)
			if err != nil {
				return err
			}
			if entry.Kind == "" { // the plugin has not started yet: what was known before is better
				pipe.SetNX(ctx, l.keys.Entry(), encoded, 0)
			} else {
				pipe.Set(ctx, l.keys.Entry(), encoded, 0)
			}
			pipe.SAdd(ctx, task.AsynqQueuesKey, l.Queue)
		}
		return nil
	})
	return err
}

// asynqCancelChannel is where asynq's inspector announces the ID of a task, of whatever queue, that is to be cancelled
// (v0.26.0, internal/base/base.go).
const asynqCancelChannel = "asynq:cancel"

// listen wakes lanes when a submit says so, and cancels jobs when a client asks, until ctx ends.
func (in *Intake) listen(ctx context.Context) {
	var heard hearing
	receiver := broker.NewReceiver(in.Redis, broker.Handler{Message: heard.message})
	receiver.Subscribe(asynqCancelChannel)
	var receiving sync.WaitGroup
	receiving.Go(func() { receiver.Run(ctx) })
	defer receiving.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-in.changed:
			come, gone := heard.change(in.all())
			receiver.Subscribe(come...)
			receiver.Unsubscribe(gone...)
		}
	}
}

// hearing is what the messages of each channel do.
type hearing struct {
	mu sync.Mutex
	to map[string][]func(payload string)
}

// message does it.
func (h *hearing) message(channel, payload string) {
	h.mu.Lock()
	acts := h.to[channel]
	h.mu.Unlock()
	for _, act := range acts {
		act(payload)
	}
}

// change makes it that of the lanes of today, and returns the channels that have come and those that nobody has to hear any more.
func (h *hearing) change(lanes []*lane) (come, gone []string) {
	to := map[string][]func(string){}
	hear := func(channel string, act func(string)) { to[channel] = append(to[channel], act) }
	for _, l := range lanes {
		hear(asynqCancelChannel, l.cancel)
		hear(l.keys.CancelChannel(), l.cancel)
		hear(l.keys.WakeChannel(), func(string) { l.puller.wake() })
	}
	h.mu.Lock()
	before := h.to
	h.to = to
	h.mu.Unlock()
	for channel := range to {
		if before[channel] == nil && channel != asynqCancelChannel {
			come = append(come, channel)
		}
	}
	for channel := range before {
		if to[channel] == nil && channel != asynqCancelChannel {
			gone = append(gone, channel)
		}
	}
	return come, gone
}

// cancel ends a task on request, if it is held.
func (l *lane) cancel(key string) {
	if t := l.hand.cancel(key); t != nil {
		l.Dispatcher.Cancel(t.job)
	}
}
