package orchestrator

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
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
