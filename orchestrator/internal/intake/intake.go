package intake

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
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

// Intake is the lanes of all queues. It is safe for concurrent use.
type Intake struct {
	Deps
	scripts scripts
	totals  *totals
	health  *Health
	changed chan struct{} // has an element when lanes have come or gone

	mu    sync.Mutex
	lanes []*lane // the latest last; replaced whole
}

// New returns an intake without queues.
func New(deps Deps) *Intake {
	return &Intake{Deps: deps, scripts: newScripts(deps.Redis), health: &Health{log: deps.Log}, totals: &totals{}, changed: make(chan struct{}, 1)}
}

// Queue is a queue that is served.
type Queue struct {
	intake *Intake
	lane   *lane
}

// Queue adds a queue: from now on it is announced, counted and listened for, and Run takes its tasks. One that is being left may be
// added again at once: the two lanes are like two managers.
func (in *Intake) Queue(conf Lane) *Queue {
	q := &Queue{intake: in, lane: newLane(conf, in.Deps, in.scripts, in.health, in.totals)}
	in.setLanes(func(lanes []*lane) []*lane { return append(lanes, q.lane) })
	return q
}

// Run takes tasks until ctx ends, and returns when all that were taken are settled; the queue is gone then. Once giveUp is closed it
// waits for Redis no longer, and returns how many are left behind: their leases run out, and they run again.
func (q *Queue) Run(ctx context.Context, giveUp <-chan struct{}) (left int, err error) {
	left, err = q.lane.run(ctx, giveUp)
	if left == 0 { // else they are counted in the hand to the end
		q.intake.setLanes(func(lanes []*lane) []*lane {
			return slices.DeleteFunc(lanes, func(l *lane) bool { return l == q.lane })
		})
	}
	if err != nil {
		err = fmt.Errorf("serve queue %s: %w", q.lane.Queue, err)
	}
	return left, err
}

// setLanes changes the lanes.
func (in *Intake) setLanes(change func([]*lane) []*lane) {
	in.mu.Lock()
	in.lanes = change(slices.Clone(in.lanes))
	in.mu.Unlock()
	select {
	case in.changed <- struct{}{}:
	default:
	}
}

// all returns the lanes, the latest last.
func (in *Intake) all() []*lane {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.lanes
}

// Run announces the queues and listens for what concerns them until ctx ends: it is to go on until the last queue is left. Once
// giveUp is closed, a call that hangs is left behind: it ends with the client. It returns no error.
func (in *Intake) Run(ctx context.Context, giveUp <-chan struct{}) error {
	var helping sync.WaitGroup
	helping.Go(func() { in.announce(ctx) })
	helping.Go(func() { in.listen(ctx) })
	<-ctx.Done()
	ended := background(helping.Wait)
	select {
	case <-ended:
		return nil
	case <-giveUp:
	}
	timer := time.NewTimer(leaveAfter)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		in.Log.Debug("a connection for wake-ups is left behind")
	}
	return nil
}

// Kick makes the lanes look again, after a change of capacity.
func (in *Intake) Kick() {
	for _, l := range in.all() {
		l.puller.nudge()
	}
}

// InHand is how many tasks this manager has taken and not settled.
func (in *Intake) InHand() int {
	n := 0
	for _, l := range in.all() {
		n += l.hand.size()
	}
	return n
}

// Health says whether Redis answers.
func (in *Intake) Health() *Health { return in.health }
