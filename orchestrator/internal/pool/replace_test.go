package pool_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// staying are the processes that take jobs.
func (r *rig) staying() (n int) {
	for _, p := range r.live() {
		if !p.Leaving() {
			n++
		}
	}
	return n
}

// A replacement starts a new process before it lets an old one go, one at a time and one above max_workers at most, so that there
// are never fewer that take jobs; it waits for jobs, and costs none.
func TestReplaceStartsNewOnesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MinWorkers, q.MaxWorkers = 3, 3 }))
		r.took = 50 * time.Millisecond
		r.run()
		pass(time.Second)
		busy := r.offer(1)[0]
		if n := r.Replace(job.ExitReload); n != 3 {
			t.Errorf("%d are replaced, want 3", n)
		}
		for range 100 {
			pass(5 * time.Millisecond)
			synctest.Wait()
			if n := r.staying(); n < 3 || len(r.live()) > 4 {
				t.Fatalf("%d processes take jobs, %d are there", n, len(r.live()))
			}
		}
		if n := r.launched(); n != 4 {
			t.Errorf("%d starts while the first old one has a job, want 4", n)
		}
		r.all()[0].finish(busy, job.Succeeded)
		pass(time.Second)
		synctest.Wait()
		live := r.live()
		if len(live) != 3 || live[0].id <= 3 || r.launched() != 6 {
			t.Errorf("%d are there after %d starts, the oldest is %d", len(live), r.launched(), live[0].id)
		}
		if s := r.Stats(); s.Exits[job.ExitReload] != 3 || s.Refused != "" {
			t.Errorf("%+v", s)
		}
		pass(time.Minute)
		if n := r.launched(); n != 6 {
			t.Errorf("it goes on: %d starts", n)
		}
		r.finished()
	})
}

// A process that was being started when the replacement began is an old one.
func TestReplaceReachesStartsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MinWorkers = 1 }))
		r.took = time.Second
		r.run()
		pass(500 * time.Millisecond)
		r.Replace(job.ExitReplaced)
		pass(5 * time.Second)
		synctest.Wait()
		if live := r.live(); len(live) != 1 || live[0].id != 2 || r.Stats().Exits[job.ExitReplaced] != 1 {
			t.Errorf("%+v", r.Stats())
		}
		r.finished()
	})
}

// When the first new process does not start, or ends at once, the old ones stay, all of them, and it is said why.
func TestReplaceIsGivenUpWhenTheNewDoNotStart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		breaks func(*rig)
		says   string
		gone   int // old ones at most
	}{
		"does not start": {func(r *rig) { r.fails.Store(true) }, "install it again", 0},
		"ends at once":   {func(r *rig) { r.dies.Store(true) }, "last words", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, queue(func(q *settings.Queue) { q.MaxWorkers, q.MinWorkers, q.WorkerIdle = 3, 1, 0 })).run()
				r.offer(3)
				synctest.Wait()
				for _, p := range r.live() {
					p.finish(p.running()[0], job.Succeeded)
				}
				synctest.Wait()
				test.breaks(r)
				r.Replace(job.ExitReload)
				pass(time.Hour)
				synctest.Wait()
				if n := r.staying(); n < 3-test.gone {
					t.Errorf("%d of three old processes stay", n)
				}
				s := r.Stats()
				if !strings.Contains(s.Refused, test.says) || s.CircuitOpen {
					t.Errorf("%+v", s)
				}
				if limits := strings.Join(r.Explain().Limits, "\n"); !strings.Contains(limits, "the old workers stay") {
					t.Errorf("the limits are %q", limits)
				}
				r.fails.Store(false)
				r.dies.Store(false)
				r.Replace(job.ExitReload)
				pass(time.Hour)
				synctest.Wait()
				if live := r.live(); r.Stats().Refused != "" || len(live) < 3-test.gone || live[0].id <= 3 {
					t.Errorf("after another try: %+v", r.Stats())
				}
				r.finished()
			})
		})
	}
}

// Where the budget has no room for one process more, an old one leaves first and its successor follows; not more than one at a time
// is missing.
func TestReplaceWithinAFullBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := budget.New(func() budget.Limits { return budget.Limits{Processes: 3} })
		r := newRigWithin(t, "q", queue(func(q *settings.Queue) { q.MinWorkers, q.MaxWorkers = 3, 5 }), shared)
		r.took = 10 * time.Millisecond
		r.run()
		pass(time.Second)
		r.Replace(job.ExitReload)
		for range 100 {
			pass(time.Millisecond)
			synctest.Wait()
			if n := len(r.live()); n > 3 || n < 2 {
				t.Fatalf("%d processes", n)
			}
		}
		if live := r.live(); len(live) != 3 || live[0].id != 4 || r.launched() != 6 {
			t.Errorf("%+v", r.Stats())
		}
		r.finished()
	})
}

// An operator's restart of one process replaces that one alone, a new one first.
func TestRestartOfOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MinWorkers, q.MaxWorkers = 2, 2 })).run()
		synctest.Wait()
		if err := r.Restart(2, job.ExitOperator); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if live := r.live(); len(live) != 2 || live[0].id != 1 || live[1].id != 3 || r.Stats().Exits[job.ExitOperator] != 1 {
			t.Errorf("%+v", r.Stats())
		}
		if err := r.Restart(2, job.ExitOperator); !errors.Is(err, pool.ErrNoWorker) {
			t.Errorf("of one that is gone: %v", err)
		}
		r.finished()
	})
}
