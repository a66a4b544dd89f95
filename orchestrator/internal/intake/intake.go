package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// Dispatcher is where a lane's jobs go: the queue's pool.
type Dispatcher interface {
	// Capacity is how many jobs it would hold at once; 0 while it takes none.
	Capacity() int
	Offer(j *job.Job)
	Cancel(j *job.Job)
}

// Ender decides what becomes of a job that is ended before it is run.
type Ender interface {
	End(j *job.Job, o job.Outcome)
}

// Lane is what a queue is served with.
type Lane struct {
	Queue      string
	Dispatcher Dispatcher
	// Kind is the kind of task that the queue's plugin runs; empty while that is not known.
	Kind func() string
	// Check says what is wrong with a payload.
	Check func(payload []byte) error
	// Entry is what clients without a manager need to know of the queue.
	Entry func() task.Entry
}

// Deps are what the intake needs.
type Deps struct {
	Redis redis.UniversalClient
	Ender Ender
	Log   *slog.Logger
}

// Intake is the lanes of all queues.
type Intake struct {
	Deps
	lanes  map[string]*lane
	health *Health
}

// New returns an intake for the given queues.
func New(deps Deps, lanes []Lane) *Intake {
	in := &Intake{Deps: deps, lanes: make(map[string]*lane, len(lanes)), health: &Health{}}
	s := newScripts()
	for _, conf := range lanes {
		in.lanes[conf.Queue] = newLane(conf, deps, s, in.health)
	}
	return in
}

// LeftError says that a stop had to leave tasks behind: their leases run out, and they run again.
type LeftError struct{ Tasks int }

func (e *LeftError) Error() string {
	return fmt.Sprintf("%d tasks could not be put back because Redis is away; they run again when their leases have run out", e.Tasks)
}

// Run takes tasks until ctx ends, and returns when all that were taken are settled. Once giveUp is closed it waits for
// Redis no longer, and returns a *LeftError for what is left.
func (in *Intake) Run(ctx context.Context, giveUp <-chan struct{}) error {
	var running sync.WaitGroup
	var mu sync.Mutex
	var problems []error
	left := 0
	announcing, stopAnnouncing := context.WithCancel(context.Background())
	defer stopAnnouncing()
	var helping sync.WaitGroup
	helping.Go(func() { in.announce(announcing) })
	helping.Go(func() { in.listen(announcing) })
	for _, l := range in.lanes {
		running.Go(func() {
			n, err := l.run(ctx, giveUp)
			mu.Lock()
			defer mu.Unlock()
			left += n
			if err != nil {
				problems = append(problems, fmt.Errorf("serve queue %s: %w", l.Queue, err))
			}
		})
	}
	running.Wait()
	stopAnnouncing()
	helping.Wait()
	if left > 0 {
		problems = append(problems, &LeftError{Tasks: left})
	}
	return errors.Join(problems...)
}

// Kick makes the lanes look again, after a change of capacity.
func (in *Intake) Kick() {
	for _, l := range in.lanes {
		l.nudge()
	}
}

// InHand is how many tasks this manager has taken and not settled.
func (in *Intake) InHand() int {
	n := 0
	for _, l := range in.lanes {
		n += l.hand.size()
	}
	return n
}

// Health says whether Redis answers.
func (in *Intake) Health() *Health { return in.health }

// announceEvery is how often the entries of the queues are written again, should somebody have flushed Redis.
const announceEvery = time.Minute

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
			in.health.report(err)
			timer.Reset(time.Second)
			continue
		}
		timer.Reset(announceEvery)
	}
}

// Announce writes the entries of the queues to Redis, so that clients know them. Run repeats it; call it before Run to have
// them there before the first task.
func (in *Intake) Announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := in.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, l := range in.lanes {
			entry, err := task.EncodeEntry(l.Entry())
			if err != nil {
				return err
			}
			pipe.Set(ctx, l.keys.Entry(), entry, 0)
			pipe.SAdd(ctx, task.AsynqQueuesKey, l.Queue)
		}
		return nil
	})
	return err
}

// listen wakes lanes when a submit says so, and cancels jobs when a client asks. go-redis connects again by itself.
func (in *Intake) listen(ctx context.Context) {
	byChannel := map[string]func(payload string){}
	channels := make([]string, 0, 2*len(in.lanes))
	for _, l := range in.lanes {
		byChannel[l.keys.WakeChannel()] = func(string) { l.wake() }
		byChannel[l.keys.CancelChannel()] = func(key string) {
			if j := l.hand.jobOf(key); j != nil {
				l.Dispatcher.Cancel(j)
			}
		}
		channels = append(channels, l.keys.WakeChannel(), l.keys.CancelChannel())
	}
	if len(channels) == 0 {
		return
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
