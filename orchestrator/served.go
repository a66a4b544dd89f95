package orchestrator

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

// served is one queue as one plugin serves it: what comes and goes together. A queue that changes its plugin is another one.
type served struct {
	name, plugin string

	intake *intake.Queue
	gate   *gate // before the locks
	locks  *lock.Queue
	pool   *pool.Pool

	leave chan struct{}                  // closed when it is to be left
	last  atomic.Pointer[settings.Queue] // what held when it was to be left; nil before
}

// leaving reports whether the queue is being left.
func (s *served) leaving() bool {
	select {
	case <-s.leave:
		return true
	default:
		return false
	}
}

// buildQueues makes what all queues share, and the queues of the configuration.
func (o *Orchestrator) buildQueues() {
	o.budget = budget.New(func() budget.Limits {
		m := o.store.Load().Manager
		return budget.Limits{Processes: m.MaxProcesses, Memory: m.MaxMemory}
	})
	o.intake = intake.New(intake.Deps{Redis: o.redis, Ender: ender{o.controller, o.locker, o.metrics}, Log: o.log})
	queues := make(map[string]*served, len(o.config.Queues))
	for name, q := range o.config.Queues {
		queues[name] = o.buildQueue(name, q.Plugin)
	}
	o.present.change(func(now lineup) lineup {
		now.queues = queues
		return now
	})
}

// buildQueue makes what serves a queue: intake, gate, locks and pool. From now on the queue is announced, and nothing runs yet.
func (o *Orchestrator) buildQueue(name, plugin string) *served {
	s := &served{name: name, plugin: plugin, leave: make(chan struct{})}
	manifest := func() *workerv1.Manifest {
		p, _ := o.catalog.Get(plugin)
		return p.Manifest
	}
	s.pool = pool.New(pool.Deps{
		Queue: name, Plugin: plugin, Budget: o.budget, Launcher: queueLauncher{o, s}, Ender: newsEnder{ender{o.controller, o.locker, o.metrics}, o.news, o.writings},
		Abort: o.abort, Log: o.log, Retry: func() { o.programs.retry(plugin) },
		Settings: func() (settings.Queue, settings.Manager) { return o.settingsOf(s), o.store.Load().Manager },
	})
	if p, _ := o.catalog.Get(plugin); p.Err != nil {
		s.pool.Broken(p.Err)
	}
	s.locks = o.locker.Queue(lock.QueueDeps{
		Queue: name, Next: s.pool, Fields: func() []string { return manifest().GetLockKey() },
		Settings: func() settings.Queue { return o.settingsOf(s) },
		Room:     o.intake.Kick,
	})
	s.gate = &gate{Dispatcher: s.locks}
	s.intake = o.intake.Queue(intake.Lane{
		Queue: name, Dispatcher: s.gate,
		Kind:  func() string { return manifest().GetName() },
		Check: func(payload []byte) error { return o.catalog.Check(plugin, payload) },
		Entry: func() task.Entry {
			m := manifest()
			return task.Entry{
				Queue: name, Kind: m.GetName(), Schema: m.GetPayloadSchema(), RetentionSeconds: int64(o.settingsOf(s).Retention / time.Second),
			}
		},
	})
	return s
}

// settingsOf returns the settings of a queue that is served, or is being left.
func (o *Orchestrator) settingsOf(s *served) settings.Queue {
	q, ok := o.store.Load().Queue(s.name)
	if last := s.last.Load(); !ok && last != nil {
		return *last
	}
	return q
}

// plugin is a program of the configuration and its file.
type plugin struct {
	PluginConfig
	file *programFile
}

// lineup is the plugins and queues of a moment. It is never changed, only replaced by another.
type lineup struct {
	plugins map[string]*plugin
	queues  map[string]*served
	leaving []*served // they end their last tasks; one of the same name may have come already

	schedules map[string]string // the queue of each
}

// all returns the queues that are served and those that are being left.
func (l *lineup) all() []*served {
	return slices.AppendSeq(slices.Clone(l.leaving), maps.Values(l.queues))
}

// of returns the queues of a plugin.
func (l *lineup) of(plugin string) []*served {
	var queues []*served
	for _, s := range l.queues {
		if s.plugin == plugin {
			queues = append(queues, s)
		}
	}
	return queues
}

// present is the lineup of now. Any number of goroutines may read it while one changes it.
type present struct {
	atomic.Pointer[lineup]
	changing sync.Mutex
}

func newPresent() *present {
	p := &present{}
	p.Store(&lineup{plugins: map[string]*plugin{}, queues: map[string]*served{}})
	return p
}

// change replaces the lineup by one that is made from it. next must not write to what it gets.
func (p *present) change(next func(now lineup) lineup) {
	p.changing.Lock()
	defer p.changing.Unlock()
	after := next(*p.Load())
	p.Store(&after)
}

// gone drops a queue that was being left.
func (p *present) gone(s *served) {
	p.change(func(now lineup) lineup {
		now.leaving = slices.DeleteFunc(slices.Clone(now.leaving), func(other *served) bool { return other == s })
		return now
	})
}

// crew is what runs for the queues: the pools, and what takes their tasks. One goroutine at a time adds to it and waits for it.
type crew struct {
	o      *Orchestrator
	giveUp chan struct{} // closed when Redis is waited for no longer
	pools  sync.WaitGroup
	taking sync.WaitGroup

	mu       sync.Mutex
	left     int // tasks that could not be put back
	problems []error
}

// serve serves a queue until ctx ends or it is to be left.
func (c *crew) serve(ctx context.Context, s *served) {
	ctx, stop := context.WithCancel(ctx)
	pooled := make(chan struct{})
	c.pools.Go(func() {
		defer stop()
		select {
		case <-s.leave:
			s.locks.Leave()
		case <-ctx.Done():
		}
	})
	c.pools.Go(func() {
		defer close(pooled)
		c.note(0, s.pool.Run(ctx))
	})
	c.taking.Go(func() {
		c.note(s.intake.Run(ctx, c.giveUp))
		<-pooled
		if s.leaving() {
			c.o.present.gone(s)
			c.o.log.Info("a queue has been left", "queue", s.name, "plugin", s.plugin)
		}
	})
}

func (c *crew) note(left int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left += left
	if err != nil {
		c.problems = append(c.problems, err)
	}
}
