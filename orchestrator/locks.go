package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/controller"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/orchestrator/internal/metrics"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// openLocks makes the locks of tasks, in the memcached servers that the configuration names or else in Redis.
func (o *Orchestrator) openLocks(stack *stages) error {
	var store lock.Store = lock.NewRedis(o.redis)
	if servers := o.config.Locks.Memcached; len(servers) > 0 {
		m, err := lock.NewMemcached(servers, o.config.Locks.Timeout)
		if err != nil {
			return err
		}
		stack.onStop("connections to memcached", m.Close)
		store = m
	}
	o.lockStoreAt = store
	o.locker = lock.New(lock.Deps{Store: store, Waiter: waiter{o.tasks}, Ender: o.controller, Manager: o.config.Manager.Name, Log: o.log})
	return nil
}

// waiter waits for the ends of tasks whose locks others wait for.
type waiter struct{ tasks client.Client }

var _ lock.Waiter = waiter{}

// Wait returns the record of a task once it has ended.
func (w waiter) Wait(ctx context.Context, id task.ID) (*task.Task, error) {
	return client.Wait(ctx, w.tasks, id)
}

// ender is the controller for those who end jobs that may have a lock: it is released once the job has its verdict. That is when
// the worker has told the outcome, or its process is gone, so that nothing runs any more under the lock; that of a run which its
// worker gave up is left to end by itself, which takes longer than the process does. The release does not wait for Redis to have
// the verdict: whoever joined the task listens a little longer for its end before it runs by itself.
type ender struct {
	*controller.Controller
	locker  *lock.Locker
	metrics *metrics.Metrics
}

// End decides what becomes of a job and releases its lock.
func (e ender) End(j *job.Job, o job.Outcome) {
	if !o.Started.IsZero() {
		e.metrics.Ran(j.ID.Queue, o.Started.Sub(j.Pending), o.Ended.Sub(o.Started))
	}
	e.Controller.End(j, o)
	if o.Loose {
		e.locker.Leave(j)
		return
	}
	e.locker.Ended(j)
}

// runLocks runs the locks until ctx ends and every job is over. The channel is closed when the last lock is released.
func (o *Orchestrator) runLocks(ctx context.Context) (released <-chan struct{}) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = o.locker.Run(ctx) // it has no error of its own
	}()
	return over
}

// awaitLocks waits for the last release, once no job is left, but no longer than wait. Locks of a store that does not answer end
// by themselves.
func (o *Orchestrator) awaitLocks(released <-chan struct{}, wait time.Duration) {
	if o.locker.Health() != nil {
		wait = min(wait, settleTimeoutAway)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-released:
	case <-timer.C:
		o.log.Warn("the store of locks does not answer; the last locks end by themselves within seconds", "locks", o.lockStore())
	}
}

// locks returns the locks that this manager's tasks have and the tasks that wait for one, the oldest first, where locks lie, and
// why the store does not answer; nil while it does.
func (o *Orchestrator) locks() (held, waiting []lock.Info, store string, err error) {
	return o.locker.Held(), o.locker.Waiting(), o.lockStore(), o.locker.Health()
}

// lockStore says where locks lie, without secrets.
func (o *Orchestrator) lockStore() string {
	if servers := o.config.Locks.Memcached; len(servers) > 0 {
		return "memcached: " + strings.Join(servers, ", ")
	}
	return fmt.Sprintf("redis: %s", o.brokerName())
}
