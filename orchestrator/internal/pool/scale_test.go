package pool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// Processes come with the load, up to max_workers, and never more; the rest waits.
func TestLoadStartsProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.Slots = 2 })).run()
		synctest.Wait()
		if n := r.launched(); n != 0 {
			t.Errorf("%d processes for nothing", n)
		}
		r.offer(11)
		synctest.Wait()
		if s := r.Stats(); len(s.Workers) != 4 || s.Running != 8 || s.Held != 3 || s.Workers[0].Slots != 2 {
			t.Errorf("%+v", s)
		}
		if c := r.Capacity(); c != 24 {
			t.Errorf("capacity %d", c)
		}
		r.finished()
	})
}

// A job goes to the process with the most jobs that has a free slot, so that idle ones can go.
func TestBusiestIsFilledFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.Slots, q.MinWorkers = 4, 3 })).run()
		synctest.Wait()
		r.offer(6)
		processes := r.all()
		for i, want := range []int{4, 2, 0} {
			if n := len(processes[i].running()); n != want {
				t.Errorf("process %d runs %d, want %d", i, n, want)
			}
		}
		processes[0].finish(processes[0].running()[0], job.Succeeded)
		synctest.Wait()
		r.offer(1)
		if n := len(processes[0].running()); n != 4 {
			t.Errorf("the busiest runs %d", n)
		}
		r.finished()
	})
}

// max_workers and min_workers act at once, both ways: surplus processes end after their jobs, idle ones first; missing ones are
// started.
func TestLiveNumberOfWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MinWorkers = 4 })).run()
		synctest.Wait()
		jobs := r.offer(2)
		synctest.Wait()
		r.set(func(q *settings.Queue) { q.MaxWorkers, q.MinWorkers = 2, 1 })
		synctest.Wait()
		if live := r.live(); len(live) != 2 || len(live[0].running()) != 1 || len(live[1].running()) != 1 {
			t.Errorf("%d processes are left, want the two busy ones", len(live))
		}
		r.set(func(q *settings.Queue) { q.MaxWorkers = 1 })
		synctest.Wait()
		if s := r.Stats(); len(s.Workers) != 2 || s.Running != 2 {
			t.Errorf("a running job was not left alone: %+v", s)
		}
		for _, p := range r.live() {
			p.finish(p.running()[0], job.Succeeded)
		}
		synctest.Wait()
		for _, j := range jobs {
			if o := r.outcome(j); o.End != job.Succeeded {
				t.Errorf("%+v", o)
			}
		}
		if n := len(r.live()); n != 1 {
			t.Errorf("%d processes, max_workers is 1", n)
		}
		r.set(func(q *settings.Queue) { q.MaxWorkers, q.MinWorkers = 6, 5 })
		synctest.Wait()
		if n := len(r.live()); n != 5 {
			t.Errorf("%d processes, min_workers is 5", n)
		}
		r.finished()
	})
}

// slots hold for processes that are started from now on; one that is there gets neither more nor fewer than it was told.
func TestLiveSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.Slots, q.MaxWorkers = 2, 2 })).run()
		r.offer(2)
		synctest.Wait()
		r.set(func(q *settings.Queue) { q.Slots = 3 })
		r.offer(5)
		synctest.Wait()
		processes := r.all()
		if len(processes) != 2 || len(processes[0].running()) != 2 || len(processes[1].running()) != 3 {
			t.Fatalf("%+v", r.Stats())
		}
		r.set(func(q *settings.Queue) { q.Slots = 1 })
		processes[1].finish(processes[1].running()[0], job.Succeeded)
		synctest.Wait()
		if n := len(processes[1].running()); n != 3 {
			t.Errorf("a process with 3 slots runs %d", n)
		}
		r.finished()
	})
}

// worker_idle ends idle processes, the newest first, down to min_workers, and when it says.
func TestWorkerIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MinWorkers = 1 })).run()
		r.offer(3)
		synctest.Wait()
		for _, p := range r.live() {
			p.finish(p.running()[0], job.Succeeded)
		}
		pass(59 * time.Second)
		synctest.Wait()
		if n := len(r.live()); n != 3 {
			t.Errorf("%d processes before worker_idle", n)
		}
		pass(time.Second)
		synctest.Wait()
		if live := r.live(); len(live) != 1 || live[0].id != 1 || r.exits[0].Reason != job.ExitIdle {
			t.Errorf("%d processes after worker_idle, want the oldest; %v", len(live), r.exits)
		}
		r.set(func(q *settings.Queue) { q.MinWorkers = 0 })
		synctest.Wait()
		if n := len(r.live()); n != 0 {
			t.Errorf("%d processes, min_workers is 0 now", n)
		}
		r.set(func(q *settings.Queue) { q.MinWorkers, q.WorkerIdle = 0, 0 })
		j := r.offer(1)[0]
		synctest.Wait()
		r.live()[0].finish(j, job.Succeeded)
		pass(24 * time.Hour)
		if n := len(r.live()); n != 1 {
			t.Error("an idle process ended though worker_idle is off")
		}
		r.finished()
	})
}

// worker_lifetime replaces a process of that age, after its jobs, and one that is idle at once; never with more processes than
// max_workers.
func TestWorkerLifetime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MinWorkers, q.MaxWorkers, q.WorkerLifetime = 2, 2, time.Hour })).run()
		synctest.Wait()
		j := r.offer(1)[0]
		pass(time.Hour)
		synctest.Wait()
		if all := r.all(); len(all) != 3 || len(all[0].running()) != 1 || len(r.live()) != 2 {
			t.Errorf("%d were started, %d are there", len(all), len(r.live()))
		}
		waits := r.offer(2)
		synctest.Wait()
		if s := r.Stats(); s.Held != 1 || s.Running != 2 {
			t.Errorf("the old process was given a job: %+v", s)
		}
		r.all()[0].finish(j, job.Succeeded)
		synctest.Wait()
		if s := r.Stats(); s.Held != 0 || len(s.Workers) != 2 || r.exits[1].Reason != job.ExitLifetime {
			t.Errorf("%+v, %v", s, r.exits)
		}
		r.finished()
		_ = waits
	})
}

// worker_max_tasks holds exactly, also for processes that run several jobs at once.
func TestWorkerMaxTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.Slots, q.WorkerMaxTasks, q.MaxWorkers = 4, 6, 2 })).run()
		jobs := r.offer(30)
		for range 100 {
			synctest.Wait()
			if n := len(r.live()); n > 2 {
				t.Fatalf("%d processes", n)
			}
			for _, p := range r.live() {
				if runs := p.running(); len(runs) > 0 {
					p.finish(runs[0], job.Succeeded)
				}
			}
		}
		for _, j := range jobs {
			if o := r.outcome(j); o.End != job.Succeeded {
				t.Errorf("%+v", o)
			}
		}
		for i, p := range r.all() {
			if n := len(p.wasSent()); n > 6 || i < 4 && n != 6 {
				t.Errorf("process %d was sent %d jobs", p.id, n)
			}
		}
		if len(r.exits) < 4 || r.exits[0].Reason != job.ExitMaxTasks {
			t.Errorf("%v", r.exits)
		}
		r.finished()
	})
}

// A process is not started for a backlog that will be gone by then; but when the jobs that run take longer than they used to, it
// is, after the time of a start.
func TestLongJobsDoNotHoldUpShortOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(nil))
		r.took = 100 * time.Millisecond
		r.run()
		first := r.offer(1)[0]
		pass(150 * time.Millisecond)
		p := r.live()[0]
		p.finish(first, job.Succeeded) // in a millisecond
		synctest.Wait()
		r.offer(2)
		synctest.Wait()
		if n := r.launched(); n != 1 {
			t.Errorf("%d starts for a backlog of a millisecond", n)
		}
		pass(99 * time.Millisecond)
		synctest.Wait()
		if n := r.launched(); n != 1 {
			t.Errorf("%d starts too early", n)
		}
		pass(2 * time.Millisecond)
		synctest.Wait()
		if n := r.launched(); n != 2 {
			t.Errorf("%d starts, the second job waits for the first", n)
		}
		r.finished()
	})
}

// A backlog that is short at every moment, because it is given to a process as fast as it is taken from a long queue, gets more
// processes all the same, once it has lasted for the time of a start.
func TestLastingBacklogStartsProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(nil))
		r.took = 100 * time.Millisecond
		r.run()
		running := r.offer(1)
		pass(150 * time.Millisecond)
		r.live()[0].finish(running[0], job.Succeeded)
		synctest.Wait()
		running = r.offer(4)
		for began := time.Now(); time.Since(began) < 95*time.Millisecond; {
			pass(time.Millisecond)
			r.live()[0].finish(running[0], job.Succeeded)
			running = append(running[1:], r.offer(1)...)
			synctest.Wait()
		}
		if n := r.launched(); n != 1 {
			t.Errorf("%d starts within the time of a start", n)
		}
		for range 10 {
			pass(time.Millisecond)
			r.live()[0].finish(running[0], job.Succeeded)
			running = append(running[1:], r.offer(1)...)
			synctest.Wait()
		}
		if n := r.launched(); n < 2 {
			t.Errorf("%d starts, and four jobs wait all the time", n)
		}
		r.finished()
	})
}
