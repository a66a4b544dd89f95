package pool_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// A suspect gets a process without jobs and has it for itself until it has ended.
func TestSuspectRunsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.Slots, q.MaxWorkers = 4, 2 })).run()
		s := suspect()
		r.Offer(s)
		r.offer(10)
		synctest.Wait()
		if stats := r.Stats(); len(stats.Workers) != 2 || stats.Running != 5 {
			t.Errorf("%+v", stats)
		}
		for _, p := range r.live() {
			if !slices.Contains(p.running(), s) {
				continue
			}
			if n := len(p.running()); n != 1 {
				t.Errorf("%d run beside the suspect", n-1)
			}
			p.finish(s, job.Succeeded)
			synctest.Wait()
			if n := len(p.running()); n != 4 {
				t.Errorf("the process runs %d jobs after its suspect", n)
			}
		}
		r.finished()
	})
}

// Suspects neither starve nor hold up the others: one process is emptied for them, the other jobs pass them on the rest; with one
// process everything takes its turn.
func TestSuspectsTakeTheirTurn(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, queue(func(q *settings.Queue) { q.Slots, q.MaxWorkers = 3, workers })).run()
			first := r.offer(3 * workers)
			synctest.Wait()
			suspects := []*job.Job{suspect(), suspect(), suspect()}
			for _, s := range suspects {
				r.Offer(s)
			}
			rest := r.offer(100)
			for step := 0; r.Stats().Held+r.Stats().Running > 0; step++ {
				for _, p := range r.live() {
					if runs := p.running(); len(runs) > 0 {
						p.finish(runs[0], job.Succeeded)
					}
				}
				synctest.Wait()
				if done := len(r.endings()) - len(first) - len(rest); step > 300 {
					t.Fatalf("no end in sight with %d workers, %d suspects ended", workers, done)
				}
			}
			for _, p := range r.all() {
				if p.mixed {
					t.Errorf("a suspect was in a process with others, with %d workers", workers)
				}
			}
			for i, j := range r.endings() {
				if j == suspects[2] && i > len(first)+60 {
					t.Errorf("the last suspect was number %d of %d, with %d workers", i, len(r.endings()), workers)
				}
			}
			r.finished()
		})
	}
}

// A cancelled suspect no longer keeps a process empty, and one that waits in a stop is given back.
func TestWaitingSuspectEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.Slots, q.MaxWorkers = 4, 1 })).run()
		r.offer(1)
		synctest.Wait()
		s, waits := suspect(), suspect()
		r.Offer(s)
		others := r.offer(2)
		synctest.Wait()
		p := r.live()[0]
		if n := len(p.running()); n != 1 {
			t.Errorf("%d run beside a suspect that waits", n)
		}
		r.Cancel(s)
		synctest.Wait()
		if n := len(p.running()); n != 3 || r.outcome(s).End != job.Cancelled {
			t.Errorf("%d run after its cancel", n)
		}
		r.Offer(waits)
		r.finished()
		if r.outcome(waits).End != job.Returned || r.outcome(others[0]).End != job.Interrupted {
			t.Error("the stop lost somebody")
		}
	})
}

// What the end of its process means for a job: nobody pays for what another did, and of several of which one must have done it
// each is a suspect.
func TestWhatTheEndOfAProcessMeans(t *testing.T) {
	t.Parallel()
	type want struct {
		end     job.End
		kind    fault.Kind
		suspect bool
	}
	interrupted := want{job.Interrupted, fault.Interrupted, false}
	plain, guilty, cancelled := job.Unfinished{}, job.Unfinished{Guilty: true}, job.Unfinished{Cancelled: true}
	ignored := job.Unfinished{Guilty: true, Cancelled: true}
	late, stubborn := job.Unfinished{Expired: true}, job.Unfinished{Expired: true, Guilty: true}
	expired := want{job.Expired, fault.Timeout, false}
	for name, test := range map[string]struct {
		reason job.ExitReason
		left   []job.Unfinished
		want   []want
	}{
		"crash, alone":         {job.ExitCrash, []job.Unfinished{plain}, []want{{job.Killed, fault.Crash, false}}},
		"crash, several":       {job.ExitCrash, []job.Unfinished{plain, plain}, []want{{job.Killed, fault.Crash, true}, {job.Killed, fault.Crash, true}}},
		"crash, one cancelled": {job.ExitCrash, []job.Unfinished{plain, cancelled}, []want{{job.Killed, fault.Crash, true}, {job.Cancelled, fault.Cancelled, false}}},
		"memory, alone":        {job.ExitMemoryMax, []job.Unfinished{plain}, []want{{job.Killed, fault.Memory, false}}},
		"memory, several":      {job.ExitMemoryMax, []job.Unfinished{plain, plain}, []want{{job.Killed, fault.Memory, true}, {job.Killed, fault.Memory, true}}},
		"time-out":             {job.ExitTaskTimeout, []job.Unfinished{plain, guilty}, []want{interrupted, {job.Killed, fault.Timeout, false}}},
		"deadline, ignored":    {job.ExitTaskTimeout, []job.Unfinished{plain, stubborn}, []want{interrupted, expired}},
		"deadline, then crash": {job.ExitCrash, []job.Unfinished{plain, late}, []want{{job.Killed, fault.Crash, true}, expired}},
		"ignored cancel":       {job.ExitIgnoredCancel, []job.Unfinished{ignored, plain}, []want{{job.Cancelled, fault.Cancelled, false}, interrupted}},
		"ignored interrupt":    {job.ExitStop, []job.Unfinished{guilty, plain}, []want{interrupted, interrupted}},
		"panic of another":     {job.ExitPanic, []job.Unfinished{plain, plain}, []want{interrupted, interrupted}},
		"operator":             {job.ExitOperator, []job.Unfinished{plain, cancelled}, []want{interrupted, {job.Cancelled, fault.Cancelled, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, queue(nil))
			for i := range test.left {
				test.left[i].Job, test.left[i].Started, test.left[i].Tail = newJob(), time.Now(), []string{"its own last words"}
			}
			r.Exited(job.Exit{Reason: test.reason, Worker: 7, Tail: []string{"last words"}}, test.left)
			for i, want := range test.want {
				o := r.outcome(test.left[i].Job)
				if o.End != want.end || o.Fault == nil || o.Fault.Kind != want.kind || o.Suspect != want.suspect || o.Worker != 7 || o.Started.IsZero() {
					t.Errorf("job %d: %+v, %v", i, o, o.Fault)
				}
				if !slices.Equal(o.Tail, test.left[i].Tail) || o.End == job.Killed && o.Fault.Detail != "its own last words" {
					t.Errorf("job %d: what the process wrote during its run is lost", i)
				}
			}
			if first := r.endings()[0]; first != test.left[len(test.left)-1].Job {
				t.Error("the oldest does not end at the head of the queue")
			}
			r.Progressed(test.left[0].Job, task.Progress{Done: 1})
			if r.progressed != 1 {
				t.Error("progress was not passed on")
			}
			if len(r.exits) != 1 {
				t.Errorf("%d ends were told", len(r.exits))
			}
		})
	}
}

// A process that stood still when a time was over makes suspects of what was in it. One that was alone in it and was never heard of
// is a suspect as well, and is charged the second time: it may be what stops the process in its first moment.
func TestStandstillMakesSuspects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		unfinished []job.Unfinished
		suspects   []bool
	}{
		{"several", []job.Unfinished{{Job: &job.Job{}}, {Job: suspect(), Unbegun: true}}, []bool{true, true}},
		{"one that was not heard of", []job.Unfinished{{Job: &job.Job{}, Unbegun: true, Guilty: true}}, []bool{true}},
		{"one that was not heard of again", []job.Unfinished{{Job: suspect(), Unbegun: true, Guilty: true}}, []bool{false}},
		{"one that had begun", []job.Unfinished{{Job: &job.Job{}, Guilty: true}}, []bool{false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for i, u := range c.unfinished {
				u.Started = time.Now()
				guilty := slices.ContainsFunc(c.unfinished, func(u job.Unfinished) bool { return u.Guilty })
				got := pool.OutcomeOf(u, job.Exit{Reason: job.ExitTaskTimeout}, !guilty, len(c.unfinished))
				if got.End != job.Killed || got.Suspect != c.suspects[i] || got.Fault.Kind != fault.Timeout {
					t.Errorf("job %d: %+v, want a kill by timeout, suspect %t", i, got, c.suspects[i])
				}
			}
		})
	}
}
