package plan_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
)

func options(seed uint64, duration time.Duration) plan.Options {
	return plan.Options{Seed: seed, Managers: 3, Tasks: 500, Duration: duration, Faults: plan.Kinds(), Locks: plan.LocksInMemcached}
}

func made(t *testing.T, o plan.Options) plan.Plan {
	t.Helper()
	p, err := plan.Make(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A seed repeats its plan; another seed makes another.
func TestSeedRepeatsThePlan(t *testing.T) {
	t.Parallel()
	first, again, other := made(t, options(1, time.Minute)), made(t, options(1, time.Minute)), made(t, options(2, time.Minute))
	if !reflect.DeepEqual(first, again) {
		t.Error("the same seed gave two plans")
	}
	if reflect.DeepEqual(first.Orders, other.Orders) || reflect.DeepEqual(first.Timelines, other.Timelines) {
		t.Error("two seeds gave one plan")
	}
}

// More tasks do not change the faults, so that a plan can be made smaller while a bug is looked for.
func TestFaultsDoNotFollowTheTasks(t *testing.T) {
	t.Parallel()
	few := options(1, time.Minute)
	few.Tasks = 50
	if !reflect.DeepEqual(made(t, few).Timelines, made(t, options(1, time.Minute)).Timelines) {
		t.Error("the faults have changed with the number of tasks")
	}
}

// A run of a few seconds has every kind of fault and every deed; what strikes one victim does not overlap, and submits are in
// the order of their times.
func TestShortRunHasEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		p := made(t, options(seed, 9*time.Second))
		kinds := map[plan.Kind]bool{}
		for _, line := range p.Timelines {
			free := time.Duration(0)
			for _, in := range line.Injections {
				kinds[in.Kind] = true
				if in.At < free || in.At >= p.Duration {
					t.Errorf("seed %d: %s at %s, free from %s", seed, in.Kind, in.At, free)
				}
				free = in.At + in.For
			}
		}
		for _, kind := range plan.Kinds() {
			if !kinds[kind] {
				t.Errorf("seed %d: no %s", seed, kind)
			}
		}
		deeds := map[string]bool{}
		for i, o := range p.Orders {
			deeds[o.Deed] = true
			if i > 0 && o.At < p.Orders[i-1].At {
				t.Errorf("seed %d: order %d comes before the one before it", seed, i)
			}
			if locked := o.Queue == "join" || o.Queue == "return"; locked != (o.Lock != "") {
				t.Errorf("seed %d: an order of queue %s has the lock %q", seed, o.Queue, o.Lock)
			}
		}
		if len(deeds) != 26 {
			t.Errorf("seed %d: %d deeds of 26", seed, len(deeds))
		}
	}
}

// Without a cache there is nothing to strike there, nor locks to ask for.
func TestNoLocks(t *testing.T) {
	t.Parallel()
	o := options(1, time.Minute)
	o.Locks = plan.NoLocks
	p := made(t, o)
	for _, line := range p.Timelines {
		for _, in := range line.Injections {
			if in.Kind == plan.MemcachedKill || in.Kind == plan.MemcachedFreeze {
				t.Errorf("%s", in.Kind)
			}
		}
	}
	for _, order := range p.Orders {
		if order.Lock != "" {
			t.Errorf("order %d has a lock", order.Number)
		}
	}
}

// A list of faults is read as people write it; an unknown one is refused with those that there are.
func TestParseKinds(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]int{"all": len(plan.Kinds()), "none": 0, "redis, worker-kill": 3, "redis-kill,redis": 2, "manager": 5} {
		if got, err := plan.ParseKinds(list); err != nil || len(got) != want {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	if _, err := plan.ParseKinds("redis,flood"); err == nil {
		t.Error("an unknown fault was taken")
	}
}

// A plan without anything in it is refused.
func TestMakeRefuses(t *testing.T) {
	t.Parallel()
	for _, o := range []plan.Options{{}, {Managers: 1, Tasks: 1}, {Managers: 1, Duration: 1}, {Tasks: 1, Duration: 1}} {
		if _, err := plan.Make(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
