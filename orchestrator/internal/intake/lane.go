package intake

import (
	"context"
	"math"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/task"
)

// lane takes one queue's tasks and settles them.
type lane struct {
	Lane
	Deps
	keys        task.Keys
	dequeueKeys []string
	scripts     scripts
	health      *Health
	totals      *totals

	hand    *hand
	puller  *puller
	fetched *fetched
	settler *settler
	leases  *leases
	server  *asynq.Server

	closed    chan struct{} // closed when nothing more is taken
	nextTimer *time.Timer   // of next
}

func newLane(conf Lane, deps Deps, s scripts, health *Health, sum *totals) *lane {
	keys := task.KeysOf(conf.Queue)
	l := &lane{
		Lane: conf, Deps: deps, keys: keys, scripts: s, health: health, totals: sum, hand: newHand(), fetched: newFetched(),
		dequeueKeys: []string{keys.Pending(), keys.Paused(), keys.Active(), keys.Lease()},
		closed:      make(chan struct{}), nextTimer: time.NewTimer(math.MaxInt64),
	}
	l.puller = newPuller(l)
	l.settler = newSettler(l)
	l.leases = &leases{lane: l}
	l.server = asynq.NewServerFromRedisClient(newGateway(l), asynq.Config{
		// The puller holds the lane to the pool's room; asynq's own bound only has to be out of the way.
		Concurrency:              2 * settings.MaxCapacity,
		Queues:                   map[string]int{conf.Queue: 1},
		TaskCheckInterval:        time.Millisecond, // next has waited already
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

func (l *lane) closing() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// leaveAfter is how long what still waits for Redis gets once the stop has given up on it. A call that hangs is left
// behind then: it ends by its own timeout, or with the client.
const leaveAfter = 100 * time.Millisecond

// run takes tasks until ctx ends, and returns when all are settled, or soon after giveUp has been closed. It returns how
// many are left.
func (l *lane) run(ctx context.Context, giveUp <-chan struct{}) (left int, err error) {
	settled := background(func() { l.settler.run(giveUp) })
	if err := l.server.Start(asynq.HandlerFunc(l.handle)); err != nil {
		l.settler.close()
		<-settled
		return 0, err
	}
	l.puller.wake()
	pulled := background(func() { l.puller.run(giveUp) })
	stopRenewing := make(chan struct{})
	renewed := background(func() { l.leases.run(stopRenewing) })
	<-ctx.Done()

	close(l.closed)
	over := make(chan struct{})
	leave := background(func() {
		select {
		case <-giveUp:
		case <-over:
			return
		}
		timer := time.NewTimer(leaveAfter)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-over:
		}
	})
	l.await(background(l.server.Stop), leave) // asynq's loop has ended
	l.await(pulled, leave)
	l.attendAll()
	l.awaitSettled(giveUp)
	l.await(background(l.server.Shutdown), leave)
	close(stopRenewing)
	l.await(renewed, leave)
	l.settler.close()
	l.await(settled, leave)
	close(over)
	<-leave
	return l.hand.size(), nil
}

// background runs f in a goroutine and returns a channel that is closed when it has ended.
func background(f func()) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	return ended
}

// await waits for the end of a part, but no longer than until leave is closed.
func (l *lane) await(ended, leave <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-leave:
	}
	select {
	case <-ended:
	default:
		l.Log.Debug("a call to Redis is left behind", "queue", l.Queue)
	}
}

// awaitSettled returns when the lane's hand is empty or giveUp is closed.
func (l *lane) awaitSettled(giveUp <-chan struct{}) {
	const look = 2 * time.Millisecond
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for l.hand.size() > 0 {
		select {
		case <-ticker.C:
		case <-giveUp:
			return
		}
	}
}
