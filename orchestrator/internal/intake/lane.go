package intake

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/task"
)

// lane takes one queue's tasks and settles them.
type lane struct {
	Lane
	Deps
	keys    task.Keys
	scripts scripts
	hand    *hand
	fetched fetched
	settler *settler
	health  *Health
	trouble trouble
	server  *asynq.Server

	nudged    chan struct{} // has an element when next should look again
	woken     atomic.Bool   // somebody said that there is work
	closed    chan struct{} // nothing more is taken
	abandoned atomic.Bool   // asynq's own scripts are refused

	// Only next uses these.
	timer         *time.Timer
	lastPull      time.Time
	backlog       bool
	waitedForRoom bool
}

func newLane(conf Lane, deps Deps, s scripts, health *Health) *lane {
	l := &lane{
		Lane: conf, Deps: deps, keys: task.KeysOf(conf.Queue), scripts: s, hand: newHand(), health: health,
		nudged: make(chan struct{}, 1), closed: make(chan struct{}), timer: time.NewTimer(time.Hour),
	}
	l.settler = newSettler(l)
	l.server = asynq.NewServerFromRedisClient(&gateway{UniversalClient: deps.Redis, keys: l.keys, lane: l}, asynq.Config{
		// The gateway holds the lane to the pool's room; asynq's own bound only has to be out of the way.
		Concurrency:              2 * settings.MaxCapacity,
		Queues:                   map[string]int{conf.Queue: 1},
		TaskCheckInterval:        time.Millisecond, // the gateway has waited already
		DelayedTaskCheckInterval: time.Second,
		ShutdownTimeout:          time.Millisecond, // by then nothing is left to wait for
		JanitorInterval:          time.Minute,
		IsFailure:                func(error) bool { return false }, // failures are counted here
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
		Logger:                   asynqLog{deps.Log.With("queue", conf.Queue)},
		LogLevel:                 asynq.WarnLevel,
	})
	return l
}

// nudge makes next look again.
func (l *lane) nudge() {
	select {
	case l.nudged <- struct{}{}:
	default:
	}
}

// wake says that there is work in the queue.
func (l *lane) wake() {
	l.woken.Store(true)
	l.nudge()
}

func (l *lane) closing() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// run takes tasks until ctx ends, and returns when all are settled or giveUp has been closed. It returns how many are left.
func (l *lane) run(ctx context.Context, giveUp <-chan struct{}) (left int, err error) {
	var settling sync.WaitGroup
	settling.Go(func() { l.settler.run(giveUp) })
	if err := l.server.Start(asynq.HandlerFunc(l.handle)); err != nil {
		close(l.closed)
		l.settler.close()
		settling.Wait()
		return 0, err
	}
	l.wake()
	<-ctx.Done()
	close(l.closed)
	l.server.Stop() // returns when asynq's loop has ended
	l.giveBackFetched()
	l.settler.waitEmpty(giveUp)
	left = l.hand.size()
	l.abandoned.Store(left > 0)
	l.shutdown(giveUp)
	l.settler.close()
	settling.Wait()
	return left, nil
}

// shutdownTimeout is how long asynq may take to end once nobody waits for Redis any more.
const shutdownTimeout = time.Second

// shutdown ends asynq. While Redis hangs it hangs in its last calls; a stop that has given up on Redis leaves it behind.
func (l *lane) shutdown(giveUp <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.server.Shutdown()
	}()
	select {
	case <-ended:
		return
	case <-giveUp:
	}
	timer := time.NewTimer(shutdownTimeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		l.Log.Warn("asynq does not end while Redis is away; it is left behind", "queue", l.Queue)
	}
}
