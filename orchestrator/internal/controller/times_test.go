package controller_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/controller"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
)

// A quantile is one of the values: the smallest that so many of them do not exceed.
func TestQuantile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n        int // the values are 1 ms to n ms
		q        float64
		wantedMs int
	}{
		{0, 0.5, 0}, {1, 0.5, 1}, {1, 0.99, 1}, {2, 0.5, 1}, {2, 0.99, 2}, {3, 0.5, 2}, {99, 0.99, 99}, {100, 0.5, 50}, {100, 0.99, 99}, {101, 0.99, 100},
		{200, 0.99, 198}, {1024, 0.5, 512}, {1024, 0.99, 1014}, {1024, 1, 1024}, {7, 0, 1},
	} {
		values := make([]time.Duration, c.n)
		for i := range values {
			values[i] = time.Duration(i+1) * time.Millisecond
		}
		if got := controller.Quantile(values, c.q); got != time.Duration(c.wantedMs)*time.Millisecond {
			t.Errorf("the quantile %g of 1 to %d ms is %s, want %d ms", c.q, c.n, got, c.wantedMs)
		}
	}
}

// The times are those of the last minute, of more runs than twenty and of no more than are remembered; the last twenty count always.
func TestTimesOfWhichRuns(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	const old, young = 5 * time.Second, time.Second // how long they ran
	for _, c := range []struct {
		old, young int
		want       controller.Times
	}{
		{0, 0, controller.Times{}},
		{1, 0, controller.Times{Runs: 1, RunP50: old, RunP99: old, WaitP50: 2 * old, WaitP99: 2 * old}},
		{2000, 0, controller.Times{Runs: 20, RunP50: old, RunP99: old, WaitP50: 2 * old, WaitP99: 2 * old}},
		{2000, 12, controller.Times{Runs: 20, RunP50: young, RunP99: old, WaitP50: 2 * young, WaitP99: 2 * old}},
		{2000, 21, controller.Times{Runs: 21, RunP50: young, RunP99: young, WaitP50: 2 * young, WaitP99: 2 * young}},
		{2000, 5000, controller.Times{Runs: 1024, RunP50: young, RunP99: young, WaitP50: 2 * young, WaitP99: 2 * young}},
	} {
		t.Run(fmt.Sprintf("%d+%d", c.old, c.young), func(t *testing.T) {
			t.Parallel()
			var timer controller.Timer
			for range c.old {
				timer.Add(now.Add(-2*time.Minute), old, 2*old)
			}
			for range c.young {
				timer.Add(now.Add(-59*time.Second), young, 2*young)
			}
			if got := timer.Times(now); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// Runs that ended by themselves or were killed have a time, each in its own queue; what was broken off or never ran has none.
func TestTimes(t *testing.T) {
	t.Parallel()
	c := newController(&published{}, &bytes.Buffer{})
	end := func(queue string, o job.Outcome) {
		j := taken(queue, "k") // could have been taken 2 s before it was
		o.Started = j.Received.Add(time.Second)
		o.Ended = o.Started.Add(o.Ended.Sub(time.Time{}))
		c.End(j, o)
	}
	ran := func(ms int) time.Time { return time.Time{}.Add(time.Duration(ms) * time.Millisecond) }
	end("q", job.Outcome{End: job.Succeeded, Ended: ran(10)})
	end("q", job.Outcome{End: job.Faulted, Fault: fault.New(fault.Failed, "x"), Ended: ran(20)})
	end("q", job.Outcome{End: job.Killed, Fault: fault.New(fault.Timeout, "x"), Ended: ran(30)})
	for _, e := range []job.End{job.Interrupted, job.Returned, job.Cancelled, job.Expired} {
		end("q", job.Outcome{End: e, Ended: ran(99)})
	}
	c.End(taken("q", "k"), job.Outcome{End: job.Faulted, Fault: fault.New(fault.InvalidPayload, "never began")})
	end("other", job.Outcome{End: job.Succeeded, Ended: ran(70)})
	want := controller.Times{Runs: 3, RunP50: 20 * time.Millisecond, RunP99: 30 * time.Millisecond, WaitP50: 3 * time.Second, WaitP99: 3 * time.Second}
	if got := c.Times("q"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := c.Times("other"); got.Runs != 1 || got.RunP99 != 70*time.Millisecond {
		t.Errorf("the other queue has %+v", got)
	}
	if got := c.Times("none"); got != (controller.Times{}) {
		t.Errorf("a queue without runs has %+v", got)
	}
}

// To remember a run allocates nothing, or each task would pay for the console.
func TestRememberingAllocatesNothing(t *testing.T) { //nolint:paralleltest // counts allocations
	var timer controller.Timer
	now := time.Now()
	if n := testing.AllocsPerRun(2000, func() { timer.Add(now, time.Second, time.Second) }); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func BenchmarkRemember(b *testing.B) {
	timer, now := new(controller.Timer), time.Now()
	for b.Loop() {
		timer.Add(now, time.Second, time.Second)
	}
}

func BenchmarkTimes(b *testing.B) {
	timer, now := new(controller.Timer), time.Now()
	for i := range 1024 {
		timer.Add(now, time.Duration(i*7919%1024), time.Duration(i*104729%1024))
	}
	for b.Loop() {
		timer.Times(now)
	}
}
