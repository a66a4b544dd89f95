package pool_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/pool"
)

// anyLoad returns a load that a pool can have.
func anyLoad(r *rand.Rand) pool.Load {
	l := pool.Load{Ready: r.IntN(8), Starting: r.IntN(3), Leaving: r.IntN(3), Max: 1 + r.IntN(8), Slots: 1 + r.IntN(4), Waiting: r.IntN(40)}
	l.Min = r.IntN(l.Max + 1)
	l.Capacity = l.Starting * l.Slots
	for range l.Ready {
		l.Capacity += 1 + r.IntN(4) // started with other settings
	}
	l.Running = r.IntN(l.Capacity + 1)
	if r.IntN(3) > 0 {
		l.MeanRun = time.Duration(r.IntN(int(time.Second)))
	}
	if r.IntN(3) > 0 {
		l.StartCost = time.Duration(r.IntN(int(time.Second)))
	}
	if r.IntN(3) == 0 {
		l.Room = pool.Room{Limited: true, Processes: r.IntN(6), Why: "there is no more"}
	}
	if l.Waiting > 0 && r.IntN(2) == 0 {
		l.Stalled = time.Duration(r.IntN(int(2 * time.Second)))
	}
	return l
}

// after is the load when a decision has been carried out.
func after(l pool.Load, d pool.Decision) pool.Load {
	l.Starting += d.Start
	l.Room.Processes -= d.Start
	l.Capacity += d.Start * l.Slots
	return l
}

// Whatever the load: there are never fewer processes than min_workers nor more than max_workers, as far as those that leave and
// the budget allow; nothing is started and stopped at once; a decision that was carried out is not made again.
func TestDecideHoldsTheBounds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a fixed seed
	for range 20_000 {
		l := anyLoad(r)
		d := pool.Decide(l)
		have := l.Ready + l.Starting
		switch total := have + d.Start - d.Stop; {
		case d.Start < 0 || d.Stop < 0 || d.Start > 0 && d.Stop > 0 || d.Again < 0 || d.Reason == "":
			t.Fatalf("%+v: %+v", l, d)
		case total > l.Max:
			t.Fatalf("%+v: %+v: more than max_workers", l, d)
		case d.Start > 0 && total+l.Leaving > l.Max:
			t.Fatalf("%+v: %+v: more than max_workers with those that leave", l, d)
		case l.Room.Limited && d.Start > l.Room.Processes:
			t.Fatalf("%+v: %+v: more than the budget has", l, d)
		case total < min(l.Min, l.Max-l.Leaving) && (!l.Room.Limited || d.Start != l.Room.Processes):
			t.Fatalf("%+v: %+v: fewer than min_workers", l, d)
		case d.Stop > 0 && have-d.Stop != l.Max:
			t.Fatalf("%+v: %+v: stops too many", l, d)
		case d.Start > 0 && l.Waiting == 0 && total > l.Min:
			t.Fatalf("%+v: %+v: starts for nothing", l, d)
		}
		if again := pool.Decide(after(l, d)); d.Stop == 0 && again.Start > 0 {
			t.Fatalf("%+v: %+v, and then %+v", l, d, again)
		}
	}
}

// More waiting jobs never start fewer processes, nor does a longer stall, a longer mean run or more room in the budget; and the
// same load is always decided in the same way.
func TestDecideIsMonotone(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a fixed seed
	for range 20_000 {
		l := anyLoad(r)
		d := pool.Decide(l)
		if again := pool.Decide(l); again != d {
			t.Fatalf("%+v: %+v, and then %+v", l, d, again)
		}
		more, stalled, longer, roomier := l, l, l, l
		roomier.Room.Processes += r.IntN(3)
		more.Waiting += 1 + r.IntN(5)
		stalled.Stalled += time.Duration(r.IntN(int(time.Second)))
		if l.MeanRun > 0 {
			longer.MeanRun += time.Duration(r.IntN(int(time.Second)))
		}
		for what, other := range map[string]pool.Load{"waiting": more, "stalled": stalled, "mean run": longer, "room": roomier} {
			if o := pool.Decide(other); o.Start < d.Start {
				t.Fatalf("%s: %+v starts %d, %+v starts %d", what, l, d.Start, other, o.Start)
			}
		}
	}
}

// No process is started for a backlog that is gone before it would be ready, unless that did not come true in that time; then
// there are as many as the jobs need, or max_workers.
func TestDecideWeighsTheStart(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a fixed seed
	for range 20_000 {
		l := anyLoad(r)
		l.Room = pool.Room{}
		l.Ready, l.Capacity = l.Ready+1, l.Capacity+1
		l.Max = max(l.Max, l.Ready+l.Starting)
		l.MeanRun, l.StartCost = 1+l.MeanRun, 1+l.StartCost
		d := pool.Decide(l)
		backlog := time.Duration(float64(l.MeanRun) * float64(l.Waiting) / float64(l.Capacity))
		have, needed := l.Ready+l.Starting, l.Waiting+l.Running > l.Capacity
		if backlog < l.StartCost && l.Stalled < l.StartCost {
			if have+d.Start > max(have, l.Min) {
				t.Fatalf("%+v: %+v: a start for a backlog of %s", l, d, backlog)
			}
			if needed && l.Waiting > 0 && d.Again != l.StartCost-l.Stalled {
				t.Fatalf("%+v: %+v: does not look again in time", l, d)
			}
			continue
		}
		if then := after(l, d); needed && l.Waiting > 0 && then.Capacity < l.Waiting+l.Running && have+d.Start+l.Leaving < l.Max {
			t.Fatalf("%+v: %+v: too few", l, d)
		}
	}
}

// A decision says why, in words for a person.
func TestDecideSaysWhy(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]pool.Load{
		"max_workers is 2":                       {Ready: 3, Max: 2, Slots: 1},
		"min_workers is 2":                       {Ready: 1, Capacity: 1, Min: 2, Max: 4, Slots: 1},
		"3 tasks fit 2 processes":                {Ready: 2, Capacity: 4, Max: 4, Slots: 2, Running: 3},
		"work for 4 more slots than 1 processes": {Ready: 1, Capacity: 2, Max: 4, Slots: 2, Waiting: 4, Running: 2},
		"4 leave, max_workers is 4":              {Leaving: 4, Max: 4, Slots: 1, Waiting: 3},
		"2 are wanted and 1 can be had: user queues wait": {
			Max: 4, Slots: 1, Waiting: 2, Room: pool.Room{Limited: true, Processes: 1, Why: "user queues wait"},
		},
		"take about 10ms, a new process 1": {Ready: 1, Capacity: 1, Max: 4, Slots: 1, Waiting: 1, Running: 1, MeanRun: 10 * time.Millisecond, StartCost: time.Second},
	} {
		if d := pool.Decide(l); !strings.Contains(d.Reason, want) {
			t.Errorf("%+v: %q does not say %q", l, d.Reason, want)
		}
	}
}
