package pool_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// Three failed starts open the circuit: what waits is given back with its attempts, the newest first, nothing more is taken, and
// the reason is shown. Tries go on at growing pauses, one at a time; the first that succeeds closes it.
func TestCircuit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(nil))
		r.fails.Store(true)
		r.run()
		jobs := r.offer(3)
		pass(250 * time.Millisecond)
		synctest.Wait()
		if s := r.Stats(); s.CircuitOpen || s.Held != 3 || !strings.Contains(s.Reason, "install it again") {
			t.Errorf("after two failures: %+v", s)
		}
		pass(100 * time.Millisecond)
		synctest.Wait()
		s := r.Stats()
		if !s.CircuitOpen || s.Held != 0 || !strings.Contains(s.Reason, "install it again") || r.Capacity() != 0 {
			t.Errorf("after three failures: %+v, capacity %d", s, r.Capacity())
		}
		slices.Reverse(jobs)
		if !slices.Equal(r.endings(), jobs) {
			t.Error("what waited was not given back the newest first")
		}
		late := r.offer(1)[0]
		for _, j := range append(jobs, late) {
			if o := r.outcome(j); o.End != job.Returned || !o.Started.IsZero() {
				t.Errorf("%+v", o)
			}
		}
		before := r.launched()
		pass(10 * time.Minute)
		synctest.Wait()
		if n := r.launched() - before; n < 55 || n > 70 { // one every ten seconds, after the first
			t.Errorf("%d tries in ten minutes", n)
		}
		r.fails.Store(false)
		pass(30 * time.Second)
		synctest.Wait()
		if s := r.Stats(); s.CircuitOpen || len(s.Workers) != 1 || r.Capacity() == 0 {
			t.Errorf("after a success: %+v", s)
		}
		j := r.offer(1)[0]
		r.live()[0].finish(j, job.Succeeded)
		synctest.Wait()
		if s := r.Stats(); s.Reason != "" {
			t.Errorf("after a job: %+v", s)
		}
		r.finished()
	})
}

// While processes of earlier starts are there, failing starts pause nothing; and when the last of them has gone, starts are tried.
func TestCircuitWithProcessesLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(nil)).run()
		r.offer(1)
		synctest.Wait()
		r.fails.Store(true)
		r.offer(2)
		pass(time.Minute)
		synctest.Wait()
		if s := r.Stats(); s.CircuitOpen || s.Held != 2 || s.Running != 1 || r.Capacity() == 0 {
			t.Errorf("%+v", s)
		}
		p := r.live()[0]
		for range 3 {
			p.finish(p.running()[0], job.Succeeded)
			synctest.Wait()
		}
		if s := r.Stats(); s.Held != 0 || s.Running != 0 {
			t.Errorf("%+v", s)
		}
		waiting := r.offer(2)
		pass(time.Minute)
		p.end(job.ExitCrash)
		synctest.Wait()
		if o := r.outcome(waiting[1]); o.End != job.Returned {
			t.Errorf("what waited: %+v", o)
		}
		if s := r.Stats(); !s.CircuitOpen || r.Capacity() != 0 {
			t.Errorf("%+v", s)
		}
		r.fails.Store(false)
		pass(time.Minute)
		synctest.Wait()
		if s := r.Stats(); s.CircuitOpen {
			t.Errorf("no start was tried: %+v", s)
		}
		r.finished()
	})
}

// A program that starts and ends at once, before or after its start was told, is no better than one that does not start.
func TestCircuitOfACrashLoop(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*rig){
		"before it is told": func(r *rig) { r.dies.Store(true); r.early.Store(true) },
		"after it was told": func(r *rig) {
			r.makes = func(p *fakeProcess) { time.AfterFunc(20*time.Millisecond, func() { p.end(job.ExitLeft) }) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, queue(func(q *settings.Queue) { q.MinWorkers = 1 }))
				end(r)
				r.run()
				pass(10 * time.Minute)
				synctest.Wait()
				if n := r.launched(); n < 55 || n > 75 { // one every ten seconds, after the first
					t.Errorf("%d starts in ten minutes", n)
				}
				if s := r.Stats(); !strings.Contains(s.Reason, "last words") {
					t.Errorf("%+v", s)
				}
				r.finished()
			})
		})
	}
}

// A worker that crashes with every task it gets opens the circuit before the whole queue has been through it; one task that
// kills its workers does not.
func TestCircuitOfAWorkerThatCrashesWithEveryTask(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		same bool
		most int
	}{"every task": {false, 40}, "one task": {true, 1000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, queue(func(q *settings.Queue) { q.MaxWorkers = 1 })).run()
				one := newJob()
				crashes := 0
				for range 1000 {
					j := newJob()
					if test.same {
						j.ID = one.ID
					}
					r.Offer(j)
					synctest.Wait()
					for _, p := range r.live() {
						if len(p.running()) > 0 {
							p.end(job.ExitCrash)
							crashes++
						}
					}
					pass(100 * time.Millisecond)
				}
				if crashes > test.most || test.same && crashes < 900 {
					t.Errorf("%d crashes", crashes)
				}
				r.finished()
			})
		})
	}
}
