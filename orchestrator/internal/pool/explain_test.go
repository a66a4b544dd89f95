package pool_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// The decisions that changed something are kept with what they were made from, the latest first and no more than 32; others are not.
func TestExplainKeepsDecisions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MaxWorkers = 50 })).run()
		synctest.Wait()
		if e := r.Explain(); len(e.Before) != 0 || len(e.Limits) != 0 || e.Now.Reason == "" {
			t.Errorf("of nothing: %+v", e)
		}
		for range 40 {
			r.offer(1)
			pass(time.Second)
		}
		r.Kick()
		synctest.Wait()
		e := r.Explain()
		if len(e.Before) != 32 || e.Before[0].Ready != 39 || e.Before[0].Start != 1 || e.Before[0].Waiting != 1 || e.Before[31].Ready != 8 {
			t.Errorf("%d are kept, the latest is %+v", len(e.Before), e.Before[0])
		}
		if e.Now.Ready != 40 || e.Now.Running != 40 || e.Now.Start != 0 || !e.Now.At.Equal(time.Now()) {
			t.Errorf("now: %+v", e.Now)
		}
		for i := range e.Before[1:] {
			if !e.Before[i].At.After(e.Before[i+1].At) {
				t.Error("they are not in order")
			}
		}
		e.Before[0].Reason = "changed"
		if r.Explain().Before[0].Reason == "changed" {
			t.Error("the pool's own decisions were given away")
		}
		r.finished()
	})
}

// What limits a queue is said of a real pool: its workers, its buffer, its circuit.
func TestExplainOfAPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, queue(func(q *settings.Queue) { q.MaxWorkers, q.Buffer = 1, 2 })).run()
		jobs := r.offer(3)
		synctest.Wait()
		limits := r.Explain().Limits
		if len(limits) != 2 || !strings.Contains(limits[0], "max_workers is 1") || !strings.HasPrefix(limits[1], "buffer: 3 tasks") {
			t.Errorf("%q", limits)
		}
		for _, j := range jobs {
			r.all()[0].finish(j, job.Succeeded)
			synctest.Wait()
		}
		if limits := r.Explain().Limits; len(limits) != 0 {
			t.Errorf("with nothing to do: %q", limits)
		}
		r.finished()
	})
}

// Each limit is said when it holds, and not when it does not; the circuit comes before the budget, and that before the workers.
func TestLimits(t *testing.T) {
	t.Parallel()
	rate := settings.Rate{Tasks: 10, Per: time.Second}
	for want, facts := range map[string]pool.Facts{
		"":                                       {Most: 16},
		"the manager stops":                      {Most: 16, Stopping: true},
		"circuit: y, the next is tried in 1s: x": {Most: 16, Paused: true, Failures: 3, Trouble: "y", Failure: "x", NextStart: time.Second},
		"circuit: y, 2 in a row by now, and the next is tried in 1s: x": {Most: 16, Failures: 2, Trouble: "y", Failure: "x", NextStart: time.Second},
		"budget: users wait": {Most: 16, Budget: "users wait"},
		"rate: 10/s":         {Most: 16, Held: 1, Rate: rate, NextTask: 80 * time.Millisecond, Load: pool.Load{Max: 2}},
		"workers: the 2 slots of 1 workers are taken, 1 more leave": {
			Most: 16, Held: 1, Load: pool.Load{Ready: 1, Leaving: 1, Max: 2, Capacity: 2, Running: 2},
		},
		"workers: 1 are being started": {Most: 16, Held: 1, Load: pool.Load{Starting: 1, Max: 2, Capacity: 1}},
		"workers: they will be done":   {Most: 16, Held: 1, Load: pool.Load{Max: 2}, Decision: pool.Decision{Again: time.Second, Reason: "they will be done"}},
		"suspects: a worker died":      {Most: 16, Held: 2, Suspects: 2, Load: pool.Load{Max: 2}},
		"buffer: 16 tasks":             {Most: 16, Held: 10, Jobs: 6, Load: pool.Load{Max: 2}},
		"replacement: the old workers": {Most: 16, Refused: "x"},
	} {
		limits := pool.Limits(facts)
		switch {
		case want == "" && len(limits) != 0:
			t.Errorf("%+v: %q", facts, limits)
		case want != "" && (len(limits) != 1 || !strings.HasPrefix(limits[0], want)):
			t.Errorf("%+v: %q, want only %q", facts, limits, want)
		}
	}
	all := pool.Limits(pool.Facts{Most: 1, Held: 1, Paused: true, Failures: 3, Failure: "x", Budget: "y", Load: pool.Load{Ready: 1, Max: 1}})
	if len(all) != 4 || !strings.HasPrefix(all[0], "circuit") || !strings.HasPrefix(all[1], "budget") || !strings.HasPrefix(all[2], "workers") {
		t.Errorf("%q", all)
	}
}
