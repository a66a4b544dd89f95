package pool_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// A stop gives back at once what waits, the newest first, so that the oldest ends at the head of the queue; idle processes end at
// once, and what runs has drain_timeout to finish. Nothing is taken any more.
func TestStopLetsJobsFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MinWorkers, q.MaxWorkers = 2, 2 })).run()
		synctest.Wait()
		jobs := r.offer(5)
		busy := r.live()
		r.stop()
		synctest.Wait()
		if want := []*job.Job{jobs[4], jobs[3], jobs[2]}; !slices.Equal(r.endings(), want) {
			t.Error("what waited was not given back the newest first")
		}
		if late := r.offer(1)[0]; r.outcome(late).End != job.Returned || r.Capacity() != 0 {
			t.Error("a job was taken after the stop")
		}
		pass(9 * time.Second)
		busy[0].finish(jobs[0], job.Succeeded)
		synctest.Wait()
		if n := len(r.live()); n != 1 {
			t.Errorf("%d processes; the idle one should have gone", n)
		}
		busy[1].finish(jobs[1], job.Faulted)
		began := time.Now()
		r.finished()
		if took := time.Since(began); took > 0 {
			t.Errorf("the end of the last job did not end the stop, it took %s more", took)
		}
		if r.outcome(jobs[0]).End != job.Succeeded || r.outcome(jobs[1]).End != job.Faulted {
			t.Error("jobs that ended in time were not let finish")
		}
	})
}

// What still runs after drain_timeout is interrupted, and killed when it has not heeded that within a second. Abort skips
// drain_timeout, whether it comes before or during the stop.
func TestStopEndsWhatDoesNot(t *testing.T) {
	t.Parallel()
	abortAt := func(d time.Duration) func(*rig) {
		return func(r *rig) { time.AfterFunc(d, func() { close(r.abort) }) }
	}
	for name, test := range map[string]struct {
		stubborn bool
		prepare  func(*rig)
		want     time.Duration
	}{
		"heeds":                {false, func(*rig) {}, 10 * time.Second},
		"stubborn":             {true, func(*rig) {}, 10*time.Second + pool.StopGrace},
		"heeds, aborted":       {false, abortAt(3 * time.Second), 3 * time.Second},
		"stubborn, aborted":    {true, abortAt(3 * time.Second), 3*time.Second + pool.StopGrace},
		"stubborn, aborted at": {true, func(r *rig) { close(r.abort) }, pool.StopGrace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, queue(func(q *settings.Queue) { q.Slots = 2 }))
				r.makes = func(p *fakeProcess) { p.obeys, p.stubborn = !test.stubborn, test.stubborn }
				r.run()
				jobs := r.offer(8)
				synctest.Wait()
				test.prepare(r)
				began := time.Now()
				r.finished()
				if took := time.Since(began); took != test.want {
					t.Errorf("the stop took %s, want %s", took, test.want)
				}
				for _, j := range jobs {
					if o := r.outcome(j); o.End != job.Interrupted || o.Suspect {
						t.Errorf("%+v", o)
					}
				}
				for _, p := range r.all() {
					if len(p.asked) != 2 || p.cancels != 0 {
						t.Errorf("process %d: %d of its jobs were interrupted", p.id, len(p.asked))
					}
				}
			})
		})
	}
}

// Processes that are idle and do not go are killed after the grace, also those that had been told to go before; starts that are
// under way are given up, and a process that became ready all the same is killed.
func TestStopOfIdleAndStartingProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MinWorkers = 3 }))
		r.makes = func(p *fakeProcess) { p.stubborn = true }
		r.run()
		synctest.Wait()
		r.set(func(q *settings.Queue) { q.MinWorkers, q.MaxWorkers = 1, 1 })
		synctest.Wait()
		if n := len(r.live()); n != 3 {
			t.Fatalf("%d processes", n)
		}
		began := time.Now()
		r.finished()
		if took := time.Since(began); took != pool.StopGrace {
			t.Errorf("the stop took %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(nil))
		r.took = time.Hour
		r.run()
		j := r.offer(1)[0]
		synctest.Wait()
		began := time.Now()
		r.finished()
		if took := time.Since(began); took != 0 || r.outcome(j).End != job.Returned {
			t.Errorf("the stop took %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(nil))
		var stopped time.Time
		r.makes = func(p *fakeProcess) {
			p.stubborn, stopped = true, time.Now()
			r.stop()
			pass(time.Second) // the start goes on meanwhile
		}
		r.run()
		j := r.offer(1)[0]
		synctest.Wait()
		r.finished()
		if took := time.Since(stopped); took != time.Second {
			t.Errorf("the stop took %s after the start", took-time.Second)
		}
		if r.outcome(j).End != job.Returned || len(r.all()) != 1 || len(r.all()[0].wasSent()) != 0 {
			t.Errorf("a process that became ready during the stop was used: %+v, %d starts", r.outcome(j), len(r.all()))
		}
	})
}

// A stop does not return before the jobs of a process that has just ended have been told their end.
func TestStopWaitsForTheEndsOfJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(nil)).run()
		j := r.offer(1)[0]
		synctest.Wait()
		r.endTakes = time.Second
		r.live()[0].end(job.ExitCrash)
		synctest.Wait()
		r.stop()
		<-r.ended
		if o := r.outcome(j); o.End != job.Killed {
			t.Errorf("%+v", o)
		}
		r.finished()
	})
}

// A job that waits is cancelled at once and never sent; of one that runs its process is asked.
func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MaxWorkers = 1 })).run()
		jobs := r.offer(3)
		synctest.Wait()
		r.Cancel(jobs[1])
		if o := r.outcome(jobs[1]); o.End != job.Cancelled || o.Fault == nil || !o.Started.IsZero() {
			t.Errorf("%+v", o)
		}
		r.Cancel(jobs[0])
		synctest.Wait()
		if o := r.outcome(jobs[0]); o.End != job.Cancelled {
			t.Errorf("%+v", o)
		}
		r.Cancel(jobs[0]) // has ended
		r.Cancel(newJob())
		p := r.live()[0]
		if sent := p.wasSent(); !slices.Equal(sent, []*job.Job{jobs[0], jobs[2]}) || p.cancels != 1 {
			t.Errorf("sent %d jobs, asked %d times", len(sent), p.cancels)
		}
		r.finished()
	})
}
