// Package orchestrator is Drover's manager: it takes tasks from Redis, hands them to worker processes, holds those to
// their limits, and stores and publishes what becomes of each task.
//
// The package reads the configuration (config.go), builds the stages below internal/, and starts and stops them. It alone
// knows more than one stage. A task walks down
//
//	intake -> lock -> pool -> worker process -> controller -> intake
//
// and a change of the settings walks from settings to pool and intake. The caller is cmd/droverd. Run blocks until its
// context ends and everything has been put away.
package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/catalog"
	"github.com/drover-jobs/drover/orchestrator/internal/controller"
	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
	"github.com/drover-jobs/drover/orchestrator/internal/hook"
	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/orchestrator/internal/metrics"
	"github.com/drover-jobs/drover/orchestrator/internal/news"
	"github.com/drover-jobs/drover/orchestrator/internal/rescue"
	"github.com/drover-jobs/drover/orchestrator/internal/roster"
	"github.com/drover-jobs/drover/orchestrator/internal/schedule"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol/client/direct"
)

// Orchestrator is one manager. Build it with New, run it once with Run.
type Orchestrator struct {
	config  *Config // what it was started with; of plugins and queues the present knows
	version string
	log     *slog.Logger
	began   time.Time
	abort   chan struct{} // closed by Abort
	hurry   sync.Once
	up      chan struct{} // closed when everything runs
	guard   []string      // the program that is the reaper; none when empty

	// Run sets these, in this order, before anything reads them.
	broker      *embedded.Broker // nil unless embedded
	redis       redis.UniversalClient
	tasks       *direct.Client
	api         *api.Server
	lent        map[string]string // sockets of the API for the workers of other users, by user as written; not changed once open
	launcher    *worker.Launcher
	catalog     *catalog.Catalog
	programs    *programs
	store       *settings.Store
	controller  *controller.Controller
	locker      *lock.Locker
	budget      *budget.Budget
	rescue      *rescue.Rescue
	hooks       *hook.Relay
	roster      *roster.Roster
	schedules   *schedule.Schedules
	metrics     *metrics.Metrics
	lockStoreAt lock.Store
	intake      *intake.Intake
	status      *status
	news        *news.Hub
	control     *control

	writings  *writings               // what workers wrote
	present   *present                // the plugins and queues of now
	load      func() (*Config, error) // reads the configuration again; nil when that is not known
	hangups   chan *Config            // has the latest configuration of a signal that is to be taken
	reloading sync.Mutex              // held by the one reload that there is at a time
	coming    chan *served            // queues that a reload adds
	ending    chan struct{}           // closed when the stop begins
}

// New returns a manager for a valid configuration. It starts and touches nothing. The version is shown by the status.
func New(config *Config, version string, log *slog.Logger) *Orchestrator {
	return &Orchestrator{
		config: config, version: version, log: log, began: time.Now(), abort: make(chan struct{}), up: make(chan struct{}),
		writings: newWritings(), present: newPresent(), hangups: make(chan *Config, 1), coming: make(chan *served), ending: make(chan struct{}),
	}
}

// Up is closed when the manager takes tasks.
func (o *Orchestrator) Up() <-chan struct{} { return o.up }

// Abort makes a stop that is going on, or the next one, wait for no running task.
func (o *Orchestrator) Abort() { o.hurry.Do(func() { close(o.abort) }) }

// Report is what a stop did.
type Report struct {
	Finished uint64 // tasks that ended while it stopped
	Returned uint64 // tasks that were put back into their queues
	Left     int    // tasks that could not be put back, because Redis was away
}

// Run runs the manager until ctx ends and returns what the stop did. An error says that the manager could not start, or
// that a part of it failed.
func (o *Orchestrator) Run(ctx context.Context) (Report, error) {
	if err := os.MkdirAll(o.config.Manager.StateDir, 0o700); err != nil {
		return Report{}, fmt.Errorf("make the state directory: %w", err)
	}
	var stack stages
	report, err := o.run(ctx, &stack)
	return report, errors.Join(err, stack.stop())
}

// run starts the stages, downstream first, and stops the taking of tasks when ctx ends; what serves it is stopped by the
// caller, in the opposite order.
//
//	broker, Redis client     everything speaks to it, so it is there first and goes last
//	launcher                 its thread must outlive every process
//	controller               takes the ends of tasks
//	API                      workers and consoles speak to it until the last task has ended; its sockets are opened first of all,
//	                         so that a second manager fails before it touches anything, and who connects early waits
//	hooks                    tell of dead letters, until the API goes
//	rescue, pools            put back what managers left that died; take jobs
//	locks                    renewed until the last job is over; then the last is released
//	intake                   makes jobs
func (o *Orchestrator) run(ctx context.Context, stack *stages) (Report, error) {
	if err := o.openBroker(stack); err != nil {
		return Report{}, err
	}
	o.tasks = direct.New(o.redis, o.log, direct.WaitReplicas(o.config.Redis.WaitReplicas))
	stack.onStop("client", o.tasks.Close)
	o.news = news.New(o.redis, o.log)
	stack.start("news", o.news.Run)
	o.status = newStatus(o)
	o.buildControl()
	if err := o.openAPI(stack); err != nil {
		return Report{}, err
	}
	if err := o.openLauncher(stack); err != nil {
		return Report{}, err
	}
	if err := o.openCatalog(ctx, stack); err != nil {
		return Report{}, err
	}
	if err := o.openSettings(); err != nil {
		return Report{}, err
	}
	o.controller = controller.New(controller.Deps{Manager: o.config.Manager.Name, Redis: o.redis, Settings: o.queueSettings, Log: o.log})
	stack.start("controller", o.controller.Run)
	if err := o.openLocks(stack); err != nil {
		return Report{}, err
	}
	o.buildQueues()
	o.buildRescue()
	o.buildHooks()
	o.buildRoster()
	o.buildSchedules()
	o.announce(ctx)
	if err := o.rescue.First(ctx); err != nil {
		o.log.Warn("what an earlier manager left is put back later", "error", err)
	}
	stack.start("list of managers", o.roster.Run)
	stack.start("hooks", o.hooks.Run)
	stack.start("API", o.api.Run)
	close(o.up)
	return o.work(ctx)
}

// announceTimeout bounds the wait for Redis at the start.
const announceTimeout = time.Second

// announce makes the queues known to clients before the first of them can ask. The intake goes on trying when Redis is away.
func (o *Orchestrator) announce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	if err := o.intake.Announce(ctx); err != nil {
		o.log.Warn("Redis does not answer; the manager takes tasks as soon as it does", "error", err)
	}
}

// work serves the queues until ctx ends and every task that was taken is put away.
func (o *Orchestrator) work(ctx context.Context) (Report, error) {
	watching, stopWatching := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { o.watchSettings(watching) })
	watch.Go(func() { o.noteQueues(watching) })
	watch.Go(func() { o.programs.watch(ctx) })
	watch.Go(func() { _ = o.rescue.Run(ctx) }) // it has no error of its own
	watch.Go(func() { o.heedHangups(ctx) })
	watch.Go(func() { _ = o.schedules.Run(ctx) }) // it has no error of its own
	defer watch.Wait()
	defer stopWatching()

	released := o.runLocks(ctx)
	c := &crew{o: o, giveUp: make(chan struct{})}
	listening, stopListening := context.WithCancel(context.Background())
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		_ = o.intake.Run(listening, c.giveUp) // it has no error of its own
	}()
	o.serveQueues(ctx, c)

	before, latest := o.intake.Totals(), time.Now().Add(o.store.Load().Manager.DrainTimeout+stopBound)
	o.log.Info("stopping", "in_hand", o.intake.InHand())
	o.status.stopping()
	answers, askNoMore := o.askRedis()
	defer askNoMore()
	c.pools.Wait()
	// Every task has its verdict now. Redis gets a moment to take them, a short one when it does not answer anyway.
	wait := min(o.settleWait(answers), max(settleTimeoutAway, time.Until(latest)-settleMargin))
	timer := time.AfterFunc(wait, func() { close(c.giveUp) })
	o.awaitLocks(released, wait)
	c.taking.Wait()
	stopListening()
	<-listened
	gaveUp := !timer.Stop()

	after := o.intake.Totals()
	report := Report{Finished: after.Ended - before.Ended, Returned: after.Returned - before.Returned, Left: c.left}
	if c.left > 0 {
		c.note(0, fmt.Errorf("%d tasks could not be put back because Redis is away; they run again when their leases have run out", c.left))
	}
	if gaveUp { // Redis does not answer: whatever still waits for it would hold up the stop, each in its turn
		c.note(0, o.hangUp())
	}
	return report, errors.Join(c.problems...)
}

// serveQueues serves the queues that there are, and those that come, until ctx ends.
func (o *Orchestrator) serveQueues(ctx context.Context, c *crew) {
	defer close(o.ending)
	for _, s := range o.present.Load().queues {
		c.serve(ctx, s)
	}
	for {
		select {
		case s := <-o.coming:
			c.serve(ctx, s)
		case <-ctx.Done():
			return
		}
	}
}

// How long a stop waits for Redis once every process is gone, how long when Redis does not answer, and how long it has to answer
// the question whether it does: Redis may have gone during the stop.
const (
	settleTimeout     = time.Second
	settleTimeoutAway = 300 * time.Millisecond
	settleProbe       = 250 * time.Millisecond
	// stopBound is how much longer than drain_timeout a stop may take, and settleMargin what is left of it when Redis is given up.
	stopBound    = 2 * time.Second
	settleMargin = 600 * time.Millisecond
)

// settleWait is how long the stop waits for Redis.
func (o *Orchestrator) settleWait(answers func() bool) time.Duration {
	if o.intake.Health().Err() != nil || !answers() {
		return settleTimeoutAway
	}
	return settleTimeout
}

// askRedis asks Redis whether it answers until stop is called, so that the end of a manager's stop need not wait for the question. The
// first call of answers may have to.
func (o *Orchestrator) askRedis() (answers func() bool, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var last atomic.Bool
	asked, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for first := true; ctx.Err() == nil; first = false {
			asking, cancelAsking := context.WithTimeout(ctx, settleProbe)
			last.Store(o.redis.Ping(asking).Err() == nil)
			cancelAsking()
			if first {
				close(asked)
			}
			select {
			case <-time.After(settleProbe):
			case <-ctx.Done():
			}
		}
	}()
	return func() bool { <-asked; return last.Load() }, func() { cancel(); <-ended }
}

// watchSettings tells the stages of every change.
func (o *Orchestrator) watchSettings(ctx context.Context) {
	before := o.store.Load()
	for now := range o.store.Watch(ctx) {
		o.noteSettings(before, now)
		before = now
		for _, s := range o.present.Load().all() {
			s.pool.Kick()
		}
		o.intake.Kick()
		o.schedules.Kick()
	}
}

// queueSettings returns the settings of a queue; of one that is being left, those that held last.
func (o *Orchestrator) queueSettings(queue string) settings.Queue {
	q, ok := o.store.Load().Queue(queue)
	if ok {
		return q
	}
	for _, s := range o.present.Load().all() {
		if last := s.last.Load(); s.name == queue && last != nil {
			return *last
		}
	}
	return q
}
