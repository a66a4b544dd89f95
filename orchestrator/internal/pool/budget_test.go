package pool_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// A user queue gets its process as soon as one task of the system queue that holds the whole budget has ended, and at no cost to
// any task; while it waits both say why; when it is done the system queue has its share again.
func TestUserQueueComesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := budget.New(func() budget.Limits { return budget.Limits{Processes: 2} })
		system := newRigWithin(t, "system", queue(func(q *settings.Queue) { q.Priority = settings.PrioritySystem }), shared).run()
		user := newRigWithin(t, "user", queue(func(q *settings.Queue) { q.Priority, q.WorkerIdle = settings.PriorityUser, time.Second }), shared).run()
		system.offer(10)
		synctest.Wait()
		urgent := user.offer(1)[0]
		synctest.Wait()
		if len(system.live()) != 2 || system.staying() != 1 || len(user.live()) != 0 {
			t.Fatalf("system has %d, %d stay, user has %d", len(system.live()), system.staying(), len(user.live()))
		}
		if limits := user.Explain().Limits; len(limits) == 0 || !strings.Contains(limits[0], "max_processes") {
			t.Errorf("the user queue says %q", limits)
		}
		if e := system.Explain(); !strings.Contains(e.Before[0].Reason, "user queue user waits") || !strings.Contains(e.Limits[0], "user queue user waits") {
			t.Errorf("the system queue says %q, %q", e.Before[0].Reason, e.Limits)
		}
		for _, p := range system.live() {
			if p.Leaving() {
				p.finish(p.running()[0], job.Succeeded)
			}
		}
		synctest.Wait()
		if len(user.live()) != 1 || len(user.live()[0].running()) != 1 || len(system.live()) != 1 {
			t.Fatalf("user has %d, system %d", len(user.live()), len(system.live()))
		}
		user.live()[0].finish(urgent, job.Succeeded)
		pass(1100 * time.Millisecond)
		synctest.Wait()
		if s := system.Stats(); len(s.Workers) != 2 || s.Running != 2 || s.Exits[job.ExitBudget] != 1 {
			t.Errorf("system afterwards: %+v", s)
		}
		system.hurry()
		system.finished()
		user.finished()
	})
}

// What a pool had is there for others when its processes are gone, its starts have failed, or it has ended.
func TestBudgetIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := budget.New(func() budget.Limits { return budget.Limits{Processes: 2} })
		a := newRigWithin(t, "a", queue(nil), shared)
		a.fails.Store(true)
		a.run()
		b := newRigWithin(t, "b", queue(nil), shared).run()
		a.offer(2)
		pass(time.Minute)
		b.offer(2)
		synctest.Wait()
		if n := len(b.live()); n != 2 {
			t.Errorf("%d beside a queue that cannot start any", n)
		}
		for _, p := range b.live() {
			p.end(job.ExitCrash)
		}
		synctest.Wait()
		a.fails.Store(false)
		a.Resume()
		synctest.Wait()
		if n := len(a.live()); n != 1 {
			t.Errorf("%d after the others crashed", n)
		}
		a.finished()
		b.offer(2)
		pass(time.Minute)
		if n := len(b.live()); n != 2 {
			t.Errorf("%d when the other pool has ended", n)
		}
		b.hurry()
		b.finished()
	})
}

// max_memory counts what processes have by measurement: two that have a mebibyte each leave room for more than their plugin was
// thought to need.
func TestBudgetKnowsTheMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := budget.New(func() budget.Limits { return budget.Limits{Memory: 40 * settings.MiB} })
		r := newRigWithin(t, "q", queue(nil), shared)
		r.manager.MaxMemory = 40 * settings.MiB
		r.manager.DrainTimeout = 0
		r.run()
		r.offer(4)
		synctest.Wait()
		if n := len(r.live()); n != 1 {
			t.Errorf("%d are started before it is known what they need", n)
		}
		pass(time.Second)
		synctest.Wait()
		if n := len(r.live()); n != 4 {
			t.Errorf("%d of 1 MiB within 40 MiB", n)
		}
		r.finished()
	})
}
