package pool_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// Every end of a process is counted under its reason, and told after its start; a start that failed is an end as well.
func TestEndsAreCountedByReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(nil)).run()
		for _, reason := range job.ExitReasons() {
			if reason == job.ExitFailedStart {
				continue
			}
			j := r.offer(1)[0]
			pass(20 * time.Second) // also over the pause of a crash
			r.live()[0].finish(j, job.Succeeded)
			synctest.Wait()
			r.live()[0].end(reason)
			synctest.Wait()
		}
		r.fails.Store(true)
		r.offer(1)
		synctest.Wait()
		exits := r.Stats().Exits
		for _, reason := range job.ExitReasons() {
			if exits[reason] != 1 {
				t.Errorf("%s: %d", reason, exits[reason])
			}
		}
		last := r.exits[len(r.exits)-1]
		if last.Reason != job.ExitFailedStart || !strings.Contains(last.String(), "install it again") {
			t.Errorf("a failed start was told as %+v", last)
		}
		if len(r.starts) != len(r.exits)-1 {
			t.Errorf("%d starts and %d ends were told", len(r.starts), len(r.exits))
		}
		r.finished()
	})
}

// A process that ends before its start was told is told of in the right order, once.
func TestEarlyEndIsToldAfterItsStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MinWorkers = 1 }))
		r.dies.Store(true)
		r.early.Store(true)
		r.run()
		pass(time.Minute)
		synctest.Wait()
		if s := r.Stats(); len(s.Workers) != 0 || !s.CircuitOpen || s.Exits[job.ExitCrash] != uint64(len(r.exits)) {
			t.Errorf("%+v", s)
		}
		if len(r.starts) == 0 || len(r.starts) != len(r.exits) {
			t.Errorf("%d starts and %d ends were told", len(r.starts), len(r.exits))
		}
		r.finished()
	})
}

// The end of a process over a limit of memory says the limit and what the process had.
func TestEndForMemorySaysLimitAndSize(t *testing.T) {
	t.Parallel()
	for reason, set := range map[job.ExitReason]func(*settings.Queue){
		job.ExitMemorySoft: func(q *settings.Queue) { q.MemorySoft = settings.MiB },
		job.ExitMemoryMax:  func(q *settings.Queue) { q.MemoryMax = settings.MiB },
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, queue(set)).run()
				r.offer(1)
				pass(time.Second)
				for _, p := range r.live() {
					p.finish(p.running()[0], job.Succeeded)
				}
				synctest.Wait()
				if len(r.exits) != 1 || r.exits[0].Reason != reason || r.exits[0].Limit != 1<<20 || r.exits[0].RSS != 1<<20 || !strings.Contains(r.exits[0].Note, strings.ReplaceAll(string(reason), "-", "_")) {
					t.Errorf("%+v", r.exits)
				}
				r.finished()
			})
		})
	}
}

// An operator's kill ends the process at once and names its tasks; they go back at no cost but an interruption, and nothing
// is given to the process while it dies. Who asks for a process that is not there is told.
func TestKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.Slots = 2 })).run()
		jobs := r.offer(2)
		synctest.Wait()
		p := r.live()[0]
		if got, ok := r.Process(p.id); !ok || got.PID() != p.pid {
			t.Errorf("the process is %v, %v", got, ok)
		}
		ids, pid, err := r.Kill(p.id)
		if err != nil || pid != p.pid || len(ids) != 2 || !slices.Contains(ids, jobs[0].ID) || !slices.Contains(ids, jobs[1].ID) {
			t.Errorf("%v, %d, %v", ids, pid, err)
		}
		synctest.Wait()
		for _, j := range jobs {
			if o := r.outcome(j); o.End != job.Interrupted || o.Suspect {
				t.Errorf("%+v", o)
			}
		}
		if s := r.Stats(); s.Exits[job.ExitOperator] != 1 || s.Reason != "" {
			t.Errorf("%+v", s)
		}
		if _, _, err := r.Kill(p.id); !errors.Is(err, pool.ErrNoWorker) {
			t.Errorf("a second kill: %v", err)
		}
		if _, ok := r.Process(p.id); ok {
			t.Error("a process that has ended is found")
		}
		r.finished()
	})
}

// Resume tries a program that could not be started at once, however long the pause.
func TestResumeTriesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(nil))
		r.fails.Store(true)
		r.run()
		r.offer(1)
		pass(10 * time.Minute)
		synctest.Wait()
		r.fails.Store(false)
		before := r.launched()
		synctest.Wait()
		r.Resume()
		synctest.Wait()
		if n := r.retried.Load(); n != 1 {
			t.Errorf("what else can be tried again was told %d times", n)
		}
		if s := r.Stats(); s.CircuitOpen || r.launched() != before+1 || r.Capacity() == 0 {
			t.Errorf("%+v after %d starts", s, r.launched()-before)
		}
		r.finished()
	})
}

// The statistics name the tasks in each process and why it leaves.
func TestStatsNameTasksAndReasons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.Slots = 2 })).run()
		first := r.offer(1)[0]
		pass(time.Second)
		second := r.offer(1)[0]
		synctest.Wait()
		w := r.Stats().Workers[0]
		if w.Why != "" || len(w.Jobs) != 2 || w.Jobs[0] != first.ID || w.Jobs[1] != second.ID {
			t.Errorf("%+v", w)
		}
		r.set(func(q *settings.Queue) { q.WorkerLifetime = 500 * time.Millisecond })
		synctest.Wait()
		if w := r.Stats().Workers[0]; w.Why != job.ExitLifetime || !w.Leaving {
			t.Errorf("%+v", w)
		}
		r.finished()
	})
}
