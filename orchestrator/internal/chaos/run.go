package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/actor"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/judge"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
)

// ErrBroken says that a promise was broken; the tables say which.
var ErrBroken = errors.New("a promise was broken")

// run is one run.
type run struct {
	options  Options
	plan     plan.Plan
	dir      string
	began    time.Time
	calm     time.Time // when the faults were over
	redis    *actor.Server
	cache    *actor.Server // nil without locks
	managers []*actor.Manager
	workers  *actor.Workers
	rdb      *redis.Client
	tasks    *direct.Client
	tally    tally

	mu    sync.Mutex
	facts judge.Facts
}

// Run carries out a run. The error is ErrBroken when a promise was, and any other when the run itself could not be carried out.
func Run(ctx context.Context, options Options) error {
	p, err := plan.Make(options.Plan)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dch")
	if err != nil {
		return fmt.Errorf("make a directory for the run: %w", err)
	}
	r := &run{options: options, plan: p, dir: dir, workers: actor.NewWorkers(options.Worker), tally: tally{}}
	r.facts = judge.Facts{
		Records: map[task.ID]*task.Task{}, Ends: map[task.ID]int{}, Answers: map[task.ID]int{}, Numbers: map[string]judge.Numbers{},
		Bounds: judge.Bounds{Stop: stopPromise + options.Slack},
	}
	r.say("seed %d, %d managers, %d tasks, %s, in %s", p.Seed, p.Managers, len(p.Orders), p.Duration, dir)
	defer r.close()
	if err := r.carryOut(ctx); err != nil {
		return fmt.Errorf("the run in %s could not be carried out: %w", dir, err)
	}
	findings := judge.Judge(&r.facts)
	broken := r.print(findings)
	if broken > 0 {
		r.say("%d invariants are broken; repeat with --seed %d; logs and ledger are in %s", broken, p.Seed, dir)
		return ErrBroken
	}
	if options.Keep {
		r.say("everything is kept in %s", dir)
		return nil
	}
	return os.RemoveAll(dir)
}

// carryOut starts everything, lets it go wrong, waits for the last end, stops everything and gathers the facts.
func (r *run) carryOut(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	listening, stopListening := context.WithCancel(ctx)
	defer stopListening()
	var background sync.WaitGroup
	defer background.Wait()
	defer stopListening()
	if err := r.listen(listening, &background); err != nil {
		return err
	}
	r.began = time.Now()
	settled := make(chan struct{})
	striking, stopStriking := context.WithTimeout(ctx, r.plan.Duration)
	defer stopStriking()
	var strikes, submits sync.WaitGroup
	for _, line := range r.plan.Timelines {
		strikes.Go(func() { r.strike(striking, line) })
	}
	waiting, stopWaiting := context.WithCancel(ctx)
	defer stopWaiting()
	submits.Go(func() { r.submit(waiting) })
	strikes.Wait()
	r.calm = time.Now()
	r.say("%s: the faults are over; %d tasks have ended", time.Since(r.began).Round(time.Second), r.ended())
	timer := time.AfterFunc(r.options.Settle, stopWaiting)
	defer timer.Stop()
	go func() { submits.Wait(); close(settled) }()
	<-settled
	r.say("%s: %d of %d tasks have ended; stopping", time.Since(r.began).Round(time.Second), r.ended(), len(r.plan.Orders))
	r.stopAll(ctx)
	return r.gather(ctx)
}

func (r *run) start(ctx context.Context) error {
	var err error
	if r.redis, err = actor.NewRedis(ctx, r.dir); err != nil {
		return err
	}
	if r.plan.Locks == plan.LocksInMemcached {
		if r.cache, err = actor.NewMemcached(ctx, r.dir); err != nil {
			return err
		}
	}
	// A call is never repeated by the Redis client, so that a submit is known to have been made at most once for each error.
	r.rdb = redis.NewClient(&redis.Options{
		Network: "unix", Addr: r.redis.Socket(), MaxRetries: -1, ReadTimeout: time.Minute, WriteTimeout: time.Minute, ContextTimeoutEnabled: true,
	})
	redis.SetLogger(silent{})
	r.tasks = direct.New(r.rdb, slog.New(slog.DiscardHandler))
	for i := range r.plan.Managers {
		m, err := actor.NewManager(ctx, r.dir, fmt.Sprintf("m%d", i+1), r.options.Manager, r.configuration)
		if m != nil {
			r.managers = append(r.managers, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// silent keeps the Redis client's own lines to itself: that Redis is away is the purpose here.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// stopAll stops the managers as an operator would.
func (r *run) stopAll(context.Context) {
	var stops sync.WaitGroup
	for _, m := range r.managers {
		stops.Go(func() { r.stop(m) })
	}
	stops.Wait()
}

// stop stops one manager and notes how it did so.
func (r *run) stop(m *actor.Manager) {
	if !m.Alive() {
		r.note(func(f *judge.Facts) {
			f.Crashes = append(f.Crashes, "manager "+m.Name+" ended by itself; see "+m.Log())
		})
		return
	}
	stop, err := m.Stop(stopPatience)
	r.note(func(f *judge.Facts) { f.Stops = append(f.Stops, stop) })
	r.problem(err)
}

// close ends whatever still runs.
func (r *run) close() {
	if r.tasks != nil {
		_ = r.tasks.Close()
		_ = r.rdb.Close()
	}
	for _, m := range r.managers {
		m.Close()
	}
	for _, s := range []*actor.Server{r.redis, r.cache} {
		if s != nil {
			s.Close()
		}
	}
}

func (r *run) ledgerPath() string { return filepath.Join(r.dir, "ledger") }

func (r *run) note(change func(*judge.Facts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.facts)
}

// problem notes that the harness could not do what it wanted.
func (r *run) problem(err error) {
	if err != nil {
		r.note(func(f *judge.Facts) { f.Problems = append(f.Problems, err.Error()) })
	}
}

func (r *run) ended() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.facts.Answers)
}

func (r *run) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.options.Out, "chaos: "+format+"\n", args...)
}
