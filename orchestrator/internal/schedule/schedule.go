package schedule

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	// lookEvery is how long a look at Redis is believed: its clock, and this machine's beside it, may be set meanwhile.
	lookEvery = 30 * time.Second
	// againAfter is the pause after a failed call, and between two looks at a run that is waited for.
	againAfter = time.Second
	// callTimeout bounds one call to Redis.
	callTimeout = 2 * time.Second
)

// Spec is one schedule of this manager's configuration, as it is now.
type Spec struct {
	Name, Queue string
	settings.Schedule
}

// Submitter decides due times and submits their runs. A *direct.Client is one.
type Submitter interface {
	TakeTurn(ctx context.Context, t direct.Turn) (direct.TurnTaken, error)
	Cancel(ctx context.Context, id task.ID) (task.State, error)
	RunSchedule(ctx context.Context, queue, schedule string, payload any, manager string) (task.ID, error)
}

// Deps are what the stage needs.
type Deps struct {
	Manager string
	Redis   redis.UniversalClient
	Tasks   Submitter
	// Specs are the schedules of now. It must not block.
	Specs func() []Spec
	// Told is called for each due time that this manager decided. It must not block.
	Told func(Decided)
	Log  *slog.Logger
}

// Decided is a due time that this manager has decided.
type Decided struct {
	Spec    Spec
	Verdict direct.Verdict // fired, skipped, queued or missed
	Due     time.Time
	ID      task.ID // of the run that was fired
	// Late is how much later than planned a run was submitted; negative for one that was caught up or had waited for another.
	Late time.Duration
	// Missed is how many due times passed undecided before this one, and with it when it was missed itself.
	Missed int
}

// Schedules are those that this manager fires.
type Schedules struct {
	Deps
	kick chan struct{}

	mu       sync.Mutex
	problems map[string]error // why a schedule cannot be fired, by its name
}

// New returns the stage. It starts nothing.
func New(d Deps) *Schedules {
	return &Schedules{Deps: d, kick: make(chan struct{}, 1), problems: map[string]error{}}
}

// Kick says that the schedules may have changed. It never blocks.
func (s *Schedules) Kick() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// Run fires the schedules until ctx ends.
func (s *Schedules) Run(ctx context.Context) error {
	running := map[Spec]func(){}
	defer func() {
		for _, stop := range running {
			stop()
		}
	}()
	for {
		s.adjust(ctx, running)
		select {
		case <-ctx.Done():
			return nil
		case <-s.kick:
		}
	}
}

// adjust lets those run that there are, and no others. One that has changed begins anew.
func (s *Schedules) adjust(ctx context.Context, running map[Spec]func()) {
	wanted := map[Spec]bool{}
	for _, spec := range s.Specs() {
		wanted[spec] = true
	}
	for spec, stop := range running {
		if !wanted[spec] {
			stop()
			delete(running, spec)
			s.problem(spec.Name, nil)
		}
	}
	for spec := range wanted {
		if running[spec] != nil {
			continue
		}
		own, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			newRunner(s, spec).run(own)
		}()
		running[spec] = func() {
			cancel()
			<-done
		}
	}
}

// problem takes down why a schedule cannot be fired; nil when it can. Each new reason is a line in the log, but for Redis being away:
// others tell that.
func (s *Schedules) problem(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.problems[name]
	silent := func(err error) bool { return errors.Is(err, client.ErrUnavailable) }
	switch {
	case err == nil && before != nil:
		delete(s.problems, name)
		if !silent(before) {
			s.Log.Info("schedule can be fired again", "schedule", name)
		}
	case err != nil && (before == nil || err.Error() != before.Error()):
		s.problems[name] = err
		if !silent(err) {
			s.Log.Error("schedule cannot be fired; it is tried again", "schedule", name, "error", err)
		}
	}
}

// Problem says why a schedule cannot be fired now; nil when it can.
func (s *Schedules) Problem(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problems[name]
}
