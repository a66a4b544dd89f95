package budget_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// Whatever queues want, whenever processes start, work and end: the limits hold, the queues do not kick each other without end, no
// system queue starts anything while a user queue waits, and in the end every queue with work comes to a process.
func TestModel(t *testing.T) {
	t.Parallel()
	for range 60 {
		seed := rand.Uint64()                                                                   //nolint:gosec // another run, another order
		synctest.Test(t, func(t *testing.T) { model(t, rand.New(rand.NewPCG(seed, 0)), seed) }) //nolint:gosec // repeatable
	}
}

func model(t *testing.T, random *rand.Rand, seed uint64) {
	t.Helper()
	limits := budget.Limits{Processes: 1 + random.IntN(6)}
	if random.IntN(2) == 0 {
		limits.Memory = settings.Bytes(20+random.IntN(200)) * settings.MiB
	}
	if random.IntN(4) == 0 {
		limits.Processes = 0
		limits.Memory = max(limits.Memory, 100*settings.MiB)
	}
	h := newHouse(t, limits)
	for i := range 2 + random.IntN(4) {
		q := h.add(string(rune('a'+i)), random.IntN(2) == 0)
		q.size = settings.Bytes(5+random.IntN(40)) * settings.MiB
		q.min = random.IntN(2)
	}
	for range 500 {
		q := h.queues[random.IntN(len(h.queues))]
		happen(random, q)
		before := q.starting
		q.look()
		if q.starting > before && !q.user && h.userWaits() {
			t.Fatalf("seed %d: a system queue starts one while a user queue waits", seed)
		}
		h.settle()
		if random.IntN(3) == 0 {
			pass(time.Duration(random.IntN(1000)) * time.Millisecond)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, user := range []bool{true, false} {
		everybodyGetsOne(t, h, user, seed)
	}
}

// happen lets one thing happen to a queue.
func happen(random *rand.Rand, q *queue) {
	switch random.IntN(7) {
	case 0, 1:
		q.demand = random.IntN(6)
	case 2:
		q.started()
	case 3:
		q.left()
	case 4:
		if q.busy > q.demand {
			q.idle, q.busy = q.idle+1, q.busy-1
		}
	case 5: // one ends by itself
		if q.idle > 0 {
			q.idle--
			q.Give()
		}
	case 6:
		q.size = settings.Bytes(5+random.IntN(40)) * settings.MiB
		q.weigh()
	}
}

func (h *house) userWaits() bool {
	for _, q := range h.queues {
		if q.user && max(q.demand, q.min) > q.starting+q.idle+q.busy && !q.kicked && q.last.Why != "" {
			return true
		}
	}
	return false
}

// everybodyGetsOne gives every queue of a class work that never ends, and the others none.
func everybodyGetsOne(t *testing.T, h *house, user bool, seed uint64) {
	t.Helper()
	had := map[string]bool{}
	for _, q := range h.queues {
		q.min, q.demand = 0, 0
		if q.user == user {
			q.demand = 2
		}
		q.busy, q.idle = 0, q.idle+q.busy
	}
	for range 300 { // 30 s
		for _, q := range h.queues {
			q.started()
			q.left()
			q.look()
			h.settle()
			if q.busy > 0 {
				had[q.name] = true
			}
		}
		pass(100 * time.Millisecond)
	}
	for _, q := range h.queues {
		if q.user == user && !had[q.name] {
			t.Errorf("seed %d: %s never had a process: %+v, limits %+v", seed, q.name, q.last, h.limits)
		}
	}
}
