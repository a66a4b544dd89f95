package intake

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

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

// Announce writes the entries of the queues to Redis, so that clients know them. Run repeats it; call it before Run to have
// them there before the first task.
func (in *Intake) Announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	_, err := in.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, l := range in.lanes {
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

// listen wakes lanes when a submit says so, and cancels jobs when a client asks. go-redis connects again by itself.
func (in *Intake) listen(ctx context.Context) {
	byChannel := map[string]func(payload string){asynqCancelChannel: func(key string) {
		for _, l := range in.lanes {
			l.cancel(key)
		}
	}}
	channels := make([]string, 0, 1+2*len(in.lanes))
	channels = append(channels, asynqCancelChannel)
	for _, l := range in.lanes {
		byChannel[l.keys.WakeChannel()] = func(string) { l.puller.wake() }
		byChannel[l.keys.CancelChannel()] = l.cancel
		channels = append(channels, l.keys.WakeChannel(), l.keys.CancelChannel())
	}
	sub := in.Redis.Subscribe(ctx, channels...)
	defer func() { _ = sub.Close() }()
	messages := sub.Channel()
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-messages:
			if !ok {
				return
			}
			if act := byChannel[m.Channel]; act != nil {
				act(m.Payload)
			}
		}
	}
}

// cancel ends a task on request, if it is held.
func (l *lane) cancel(key string) {
	if t := l.hand.cancel(key); t != nil {
		l.Dispatcher.Cancel(t.job)
	}
}
