package budget_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// Without limits everything that is wanted is granted.
func TestNoLimits(t *testing.T) {
	t.Parallel()
	h := newHouse(t, budget.Limits{})
	q := h.add("q", false)
	q.demand = 1000
	q.look()
	if q.last.Start != 1000 || q.last.Why != "" || !q.Spare() {
		t.Errorf("%+v", q.last)
	}
}

// A user queue that waits gets the place of idle system processes at once, then that of busy ones after their tasks, and of no more
// of them than it needs; meanwhile no system queue starts anything, and afterwards the system queue gets its share back.
func TestUserBeforeSystem(t *testing.T) {
	t.Parallel()
	h := newHouse(t, budget.Limits{Processes: 4})
	system, user := h.add("system", false), h.add("user", true)
	system.demand = 10
	system.look()
	system.started()
	if system.busy != 4 {
		t.Fatalf("%d run", system.busy)
	}
	system.look()
	if !strings.Contains(system.last.Why, "max_processes") {
		t.Errorf("it is not said why there are no more: %+v", system.last)
	}
	system.demand = 3
	system.idle, system.busy = 1, 3
	system.look()
	user.demand = 2
	user.look()
	h.settle()
	if system.leaving != 2 || system.busy != 2 || system.idle != 0 || !strings.Contains(system.last.Why, "user") {
		t.Fatalf("of a system queue %d leave, %d are busy and %d idle: %s", system.leaving, system.busy, system.idle, system.last.Why)
	}
	if user.last.Start != 0 {
		t.Errorf("a start before anything came free")
	}
	system.left()
	h.settle()
	user.started()
	system.look()
	h.settle()
	if user.busy != 2 || system.starting != 0 {
		t.Errorf("the user queue has %d busy, the system queue starts %d", user.busy, system.starting)
	}
	user.done()
	user.idle, user.leaving = 0, 2
	user.look()
	user.left()
	h.settle()
	if system.starting != 1 { // it has two and work for three
		t.Errorf("the system queue starts %d when the user queue is done", system.starting)
	}
}

// What a user queue waits for is more than a system queue gets, also when there is room for it after all.
func TestSystemStartsNothingWhileAUserWaits(t *testing.T) {
	t.Parallel()
	h := newHouse(t, budget.Limits{Memory: 100 * settings.MiB})
	user, system := h.add("user", true), h.add("system", false)
	user.size = 45 * settings.MiB
	user.demand = 1
	user.look()
	user.started()
	user.demand = 3
	user.look()
	user.started()
	user.look()
	system.demand = 1
	system.look()
	if user.has() != 2 || system.has() != 0 || !strings.Contains(system.last.Why, "user queue user waits") || !strings.Contains(user.last.Why, "45 MiB") {
		t.Errorf("user has %d (%s), system %d (%s)", user.has(), user.last.Why, system.has(), system.last.Why)
	}
}

// Among equals everybody comes to a process: with more queues than processes each gets its turn, though the others never run out
// of work, and none has it for less than a while.
func TestFairTurns(t *testing.T) {
	t.Parallel()
	for name, user := range map[string]bool{"user": true, "system": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, budget.Limits{Processes: 2})
				turns := map[string]int{}
				for _, name := range []string{"a", "b", "c", "d", "e"} {
					h.add(name, user).demand = 3
				}
				starts := 0
				for range 600 { // a minute
					for _, q := range h.queues {
						q.look()
						h.settle()
						if q.starting > 0 {
							turns[q.name] += q.starting
							starts += q.starting
						}
						q.started()
						q.left()
						h.settle()
					}
					pass(100 * time.Millisecond)
				}
				for _, q := range h.queues {
					if turns[q.name] < 8 {
						t.Errorf("%s had %d turns in a minute: %v", q.name, turns[q.name], turns)
					}
				}
				if starts > 70 {
					t.Errorf("%d starts in a minute", starts)
				}
			})
		})
	}
}

// An idle process above min_workers goes to an equal that waits, at once; one within min_workers only to a queue that has none,
// after a while; a system queue that has none gets an idle one of a user queue above its min_workers, and never one within.
func TestIdleProcessesGiveWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, budget.Limits{Processes: 3})
		rich, poor, system := h.add("rich", true), h.add("poor", true), h.add("system", false)
		rich.demand, rich.min = 3, 2
		rich.look()
		rich.started()
		rich.done()
		rich.look()
		poor.demand = 1
		poor.look()
		h.settle()
		if rich.leaving != 1 || rich.idle != 2 {
			t.Fatalf("%d leave and %d stay", rich.leaving, rich.idle)
		}
		rich.left()
		h.settle()
		poor.started()
		poor.done()
		poor.look()
		system.demand = 2
		system.look()
		h.settle()
		if poor.leaving != 0 {
			t.Fatal("an idle user process went to a system queue at once")
		}
		if system.last.Again <= 0 {
			t.Fatalf("%+v does not say when to ask again", system.last)
		}
		pass(3 * time.Second)
		system.look()
		h.settle()
		if poor.leaving != 1 || rich.leaving != 0 {
			t.Fatalf("after a while %d and %d leave", poor.leaving, rich.leaving)
		}
		poor.left()
		h.settle()
		system.started()
		pass(time.Minute)
		system.look()
		h.settle()
		if system.has() != 1 || rich.idle != 2 {
			t.Errorf("system has %d, rich %d idle", system.has(), rich.idle)
		}
		poor.demand = 1
		poor.look()
		h.settle()
		if system.leaving != 1 {
			t.Errorf("a user queue waits, and %d system processes leave", system.leaving)
		}
	})
}

// A min_workers that takes the whole budget does not keep another queue from its first process for ever.
func TestMinWorkersDoNotStarveAnEqual(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, budget.Limits{Processes: 2})
		rich, poor := h.add("rich", true), h.add("poor", true)
		rich.min = 2
		rich.look()
		rich.started()
		rich.look()
		poor.demand = 1
		poor.look()
		h.settle()
		if rich.leaving != 0 {
			t.Error("one that min_workers keeps left at once")
		}
		pass(3 * time.Second)
		poor.look()
		h.settle()
		if rich.leaving != 1 {
			t.Fatalf("%d leave", rich.leaving)
		}
		rich.left()
		rich.look()
		h.settle()
		if poor.starting != 1 || rich.starting != 0 {
			t.Errorf("poor starts %d, rich %d", poor.starting, rich.starting)
		}
	})
}

// Nothing is started that does not fit max_memory by what processes of the queue, or of its plugin, take.
func TestMemoryOfAStart(t *testing.T) {
	t.Parallel()
	h := newHouse(t, budget.Limits{Memory: 100 * settings.MiB})
	q := h.add("q", true)
	q.size = 20 * settings.MiB
	q.demand = 10
	q.look() // 32 MiB each, as far as anybody knows
	if q.starting != 3 {
		t.Errorf("%d are started before their memory is known", q.starting)
	}
	q.started()
	h.settle()
	q.look()
	if q.has() != 5 || !strings.Contains(q.last.Why, "20 MiB") {
		t.Errorf("%d are there (%s), and 5 fit", q.has(), q.last.Why)
	}
	kin := h.Join("kin", "plugin of q", func() {})
	if g := kin.Ask(budget.Need{User: true, Wants: 1}); g.Start != 0 || !strings.Contains(g.Why, "20 MiB") {
		t.Errorf("another queue of the plugin: %+v", g)
	}
}

// A growth above max_memory lets idle processes go, those of system queues first, and of user queues only those above min_workers;
// no busy one.
func TestMemoryThatGrew(t *testing.T) {
	t.Parallel()
	h := newHouse(t, budget.Limits{Memory: 100 * settings.MiB})
	user, system := h.add("user", true), h.add("system", false)
	user.demand, user.min = 3, 1
	user.look()
	user.started()
	system.demand = 2
	system.look()
	system.started()
	h.settle()
	user.done()
	system.demand, system.idle, system.busy = 1, 1, 1
	user.look()
	system.look()
	h.settle()
	grow := func(size settings.Bytes) {
		user.size, system.size = size, size
		user.weigh()
		system.weigh()
		h.settle()
	}
	grow(22 * settings.MiB) // 110
	if system.leaving != 1 || user.leaving != 0 {
		t.Fatalf("at 110 MiB %d of system and %d of user leave", system.leaving, user.leaving)
	}
	system.left()
	grow(30 * settings.MiB) // 120
	if system.leaving != 0 || user.leaving != 1 {
		t.Fatalf("at 120 MiB %d of system and %d of user leave", system.leaving, user.leaving)
	}
	user.left()
	grow(200 * settings.MiB)
	if user.leaving != 1 || user.idle != 1 || system.busy != 1 {
		t.Errorf("at 600 MiB: user has %d idle, %d leave; system has %d busy", user.idle, user.leaving, system.busy)
	}
}

// A max_memory that no process fits still lets one run at a time, and says so.
func TestOneProcessAlwaysRuns(t *testing.T) {
	t.Parallel()
	h := newHouse(t, budget.Limits{Memory: 16 * settings.MiB})
	q, other := h.add("q", false), h.add("other", false)
	q.demand, other.demand = 2, 2
	q.look()
	if q.starting != 1 || !strings.Contains(q.last.Why, "max_memory") {
		t.Errorf("%d are started: %q", q.starting, q.last.Why)
	}
	other.look()
	if other.starting != 0 || !strings.Contains(other.last.Why, "max_memory") {
		t.Errorf("of another queue %d are started: %q", other.starting, other.last.Why)
	}
	q.demand = 0
	q.starting = 0
	q.Give()
	q.look()
	h.settle()
	if other.starting != 1 {
		t.Errorf("the next has its turn, and starts %d", other.starting)
	}
}

// A limit that is lowered lets the surplus go: system queues first, idle ones first, all after their tasks.
func TestLowerLimit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, budget.Limits{Processes: 6})
	user, system := h.add("user", true), h.add("system", false)
	user.demand, system.demand = 3, 3
	user.look()
	user.started()
	system.look()
	system.started()
	user.look()
	system.look()
	h.limits.Processes = 6 - 4
	for _, q := range h.queues {
		q.look()
	}
	for _, q := range h.queues {
		q.look()
	}
	if system.leaving != 3 || user.leaving != 1 {
		t.Errorf("%d of system and %d of user leave", system.leaving, user.leaving)
	}
}

// A spare process is there for a replacement only when nobody waits and there is room.
func TestSpare(t *testing.T) {
	t.Parallel()
	h := newHouse(t, budget.Limits{Processes: 3})
	user, system := h.add("user", true), h.add("system", false)
	system.demand = 1
	system.look()
	if !system.Spare() {
		t.Error("there is room for a spare one")
	}
	user.demand = 2
	user.look()
	if user.Spare() || system.Spare() {
		t.Error("there is no room for a spare one")
	}
	system.Give()
	if user.Spare() || system.Spare() {
		t.Error("the user queue waits for the room")
	}
}

// A seat that is given up leaves its part to the others.
func TestQuit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, budget.Limits{Processes: 1})
	gone, stays := h.add("gone", true), h.add("stays", true)
	gone.demand, stays.demand = 1, 1
	gone.look()
	stays.look()
	gone.Quit()
	h.queues = h.queues[1:]
	h.settle()
	if stays.starting != 1 {
		t.Errorf("%+v", stays.last)
	}
}

// An idle process that a system queue keeps for its min_workers gives way to a user queue at once, and so does a busy one after its
// task: what people wait for comes before what a system queue would like to keep.
func TestMinWorkersOfASystemQueueGiveWay(t *testing.T) {
	t.Parallel()
	h := newHouse(t, budget.Limits{Processes: 2})
	system, user := h.add("system", false), h.add("user", true)
	system.min, system.demand = 2, 1
	system.look()
	system.started()
	system.look()
	user.demand = 1
	user.look()
	h.settle()
	if system.leaving != 1 || system.busy != 1 {
		t.Fatalf("%d leave, %d are busy", system.leaving, system.busy)
	}
	user.demand = 2
	user.look()
	h.settle()
	if system.leaving != 2 {
		t.Errorf("%d leave, and the user queue needs two", system.leaving)
	}
}
