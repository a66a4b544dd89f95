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
	totals *totals
	lanes  map[string]*lane
	health *Health
}

// New returns an intake for the given queues.
func New(deps Deps, lanes []Lane) *Intake {
	in := &Intake{Deps: deps, lanes: make(map[string]*lane, len(lanes)), health: &Health{log: deps.Log}, totals: &totals{}}
	s := newScripts()
	for _, conf := range lanes {
		in.lanes[conf.Queue] = newLane(conf, deps, s, in.health, in.totals)
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
	in.awaitHelpers(background(helping.Wait), giveUp)
	if left > 0 {
		problems = append(problems, &LeftError{Tasks: left})
	}
	return errors.Join(problems...)
}

// awaitHelpers waits for those who announce and listen. Once the stop has given up on Redis, one whose call hangs is left behind:
// it ends with the client.
func (in *Intake) awaitHelpers(ended, giveUp <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-giveUp:
	}
	timer := time.NewTimer(leaveAfter)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		in.Log.Debug("a connection for wake-ups is left behind")
	}
}

// Kick makes the lanes look again, after a change of capacity.
func (in *Intake) Kick() {
	for _, l := range in.lanes {
		l.puller.nudge()
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
