package lock

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	// DefaultLease is how long a lock lives without being renewed. It is shorter than the time after which the tasks of a dead
	// manager are given to another, so that these find their locks free.
	DefaultLease = 8 * time.Second
	// maxTakers bounds the calls to the store that are made at once.
	maxTakers = 8
	// maxAside bounds the jobs of one queue that wait for a lock which another has.
	maxAside = 1024
	// callTimeout is the last resort: a Store returns earlier by itself.
	callTimeout = 5 * time.Second
	// endGrace is how long a job that has got the lock of the task it waited for still listens for that task's end: a lock is
	// released a moment before the end is published.
	endGrace = 250 * time.Millisecond
)

// Waiter waits for the ends of tasks.
type Waiter interface {
	// Wait returns the record of a task once it has ended. An error says that this cannot be told; then the lock alone decides.
	Wait(ctx context.Context, id task.ID) (*task.Task, error)
}

// Ender decides what becomes of a job that is ended without being run. It must not block, and may call Ended.
type Ender interface {
	End(j *job.Job, o job.Outcome)
}

// Deps are what the locks of a manager need.
type Deps struct {
	Store   Store
	Waiter  Waiter
	Ender   Ender
	Manager string        // its name, for those who find its locks
	Lease   time.Duration // DefaultLease when zero; the same in every manager
	Log     *slog.Logger
}

// Next is where jobs go that have their lock: the queue's pool. None of its methods may block.
type Next interface {
	Capacity() int
	Offer(j *job.Job)
	Cancel(j *job.Job)
	// Interrupt ends a job that has lost its lock, as interrupted. What still runs of it after grace is killed.
	Interrupt(j *job.Job, grace time.Duration)
}

// QueueDeps are what the locks of one queue need.
type QueueDeps struct {
	Queue string
	Next  Next
	// Fields are the payload fields that make up the lock key, as the plugin's manifest names them; none while it is not known.
	Fields   func() []string
	Settings func() settings.Queue // as they are now; must not block
	// Room is told when Capacity has grown by itself; may be nil. It must neither block nor call back.
	Room func()
}

// Locker is the locks of one manager. It is safe for concurrent use.
type Locker struct {
	Deps
	beat time.Duration // from one renewal of a lock to the next
	kick chan struct{} // has an element when Run must look again

	mu       sync.Mutex
	entries  map[*job.Job]*entry
	work     []*entry // to be taken
	releases []Lease
	takers   int
	follows  int
	aside    int // jobs of all queues that wait for a lock which another has
	renewing bool
	number   uint64
	wakeAt   time.Time // when Run looks again by itself
	stopping bool
	away     error // why the store's last call failed
	warned   time.Time
	silent   bool // the last line about the store said that it does not answer
}

// New returns a locker that holds nothing.
func New(d Deps) *Locker {
	if d.Lease <= 0 {
		d.Lease = DefaultLease
	}
	const beats = 4 // in a lease; three of them before its holder stops believing
	return &Locker{Deps: d, beat: d.Lease / beats, kick: make(chan struct{}, 1), entries: map[*job.Job]*entry{}}
}

// phase is where a job is: see the package's comment.
type phase int

const (
	queued   phase = iota // in work
	taking                // a call is in progress
	waiting               // until due
	settling              // has got the lock of a task that it waited for, and still listens for that task's end until due
	passing               // is being offered to the pool
	passed                // in the pool
)

// entry is one job that has a lock or waits for one. The locker's mutex guards what changes.
type entry struct {
	queue  *Queue
	job    *job.Job
	key    Key
	token  Token
	number uint64
	since  time.Time // of its lock, or of its wait

	phase     phase
	held      bool // the lock may be believed in until fence
	touched   bool // a call was made that may have taken it
	lost      bool // while passing
	loose     bool // held, not believed in, and the run goes on all the same until the store answers, as lock_missing says
	cancelled bool // while taking or passing
	fence     time.Time
	renewAt   time.Time
	due       time.Time // of the next try, or of the end of settling
	tries     int       // since something last changed

	aside     bool   // counts among the queue's jobs that wait for another's lock
	holder    Holder // whom it waits for
	fruitless Holder // whose end was told and says nothing of the work
	// stopFollow ends the goroutine that waits for the holder's end; nil when there is none.
	stopFollow context.CancelFunc
	following  task.ID
}

// Health returns why the store's last call failed; nil when it did not.
func (l *Locker) Health() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.away
}

// tellEvery bounds the lines about a store that comes and goes.
const tellEvery = 10 * time.Second

// note takes down how a call to the store went. The caller holds mu.
func (l *Locker) note(err error, now time.Time) {
	l.away = err
	switch {
	case err != nil && !l.silent && now.Sub(l.warned) >= tellEvery:
		l.silent, l.warned = true, now
		l.Log.Warn("locks cannot be had now; tasks wait for them or run without, as lock_missing says", "error", err)
	case err == nil && l.silent:
		l.silent = false
		l.Log.Info("locks can be had again")
	}
}

// wake makes Run look again, if it would not by then. The caller holds mu.
func (l *Locker) wake(at time.Time) {
	if at.Before(l.wakeAt) {
		l.wakeAt = at
		l.poke()
	}
}

func (l *Locker) poke() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}
