package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// Options are what a plan is made from.
type Options struct {
	Seed     uint64
	Managers int
	Tasks    int
	Duration time.Duration // of the time in which tasks are submitted and faults strike
	Faults   []Kind
	Locks    Locks
}

// Locks says where the managers keep their locks.
type Locks string

// The places. Without locks there are no queues whose tasks have keys.
const (
	NoLocks          Locks = "off"
	LocksInRedis     Locks = "redis"
	LocksInMemcached Locks = "memcached"
)

// Plan is a whole run, decided.
type Plan struct {
	Options
	Queues    []Queue
	Orders    []Order // by the time of their submit
	Timelines []Timeline
}

// Order is one task.
type Order struct {
	Number  int
	At      time.Duration // when it is submitted, from the begin of the run
	Queue   string
	Deed    string // for people
	Payload map[string]any
	Lock    string // lock key; empty for none
	Want    Want
	// API is true when it is submitted to a manager, not straight to Redis.
	API bool
}

// Make decides a run. The same options give the same plan.
func Make(o Options) (Plan, error) {
	if o.Managers < 1 || o.Tasks < 1 || o.Duration <= 0 {
		return Plan{}, fmt.Errorf("a run needs managers, tasks and time: got %d, %d and %s", o.Managers, o.Tasks, o.Duration)
	}
	if !slices.Contains([]Locks{NoLocks, LocksInRedis, LocksInMemcached}, o.Locks) {
		return Plan{}, fmt.Errorf("locks cannot lie in %q: use %s, %s or %s", o.Locks, LocksInMemcached, LocksInRedis, NoLocks)
	}
	p := Plan{Options: o, Queues: Queues(o.Locks != NoLocks, o.haste())}
	// Each part has its own source, so that more tasks do not change the faults.
	p.Orders = orders(rand.New(rand.NewPCG(o.Seed, 1)), o, p.Queues) //nolint:gosec // repeatable on purpose
	p.Timelines = timelines(o)
	return p, nil
}

// lockKeys is how many lock keys there are: few, so that tasks meet, in both queues that have them.
const lockKeys = 12

// orders has every deed once, if there are enough tasks, and then those that chance picks by their weight, in an order that
// chance picks as well.
func orders(r *rand.Rand, o Options, queues []Queue) []Order {
	table := deeds()
	total := 0
	for _, d := range table {
		total += d.weight
	}
	picked := make([]deed, 0, max(o.Tasks, len(table)))
	picked = append(picked, table...)
	for len(picked) < o.Tasks {
		picked = append(picked, pick(r, table, total))
	}
	r.Shuffle(len(picked), func(i, j int) { picked[i], picked[j] = picked[j], picked[i] })
	picked = picked[:o.Tasks]
	all := make([]Order, len(picked))
	for i, d := range picked {
		q := queues[r.IntN(len(queues))]
		order := Order{Number: i, Queue: q.Name, Deed: d.name, Payload: d.order(r), Want: d.want, API: r.IntN(6) == 0}
		order.At = time.Duration(r.Int64N(int64(o.Duration)))
		if q.Locked {
			order.Lock = lock(r, order)
			order.Payload["lock"] = order.Lock
		}
		order.Payload["value"] = i // makes each of them a task of its own
		all[i] = order
	}
	slices.SortStableFunc(all, func(a, b Order) int { return int(a.At - b.At) })
	return all
}

// lock is one of a few keys for a task that completes. One that does not has a key of its own: those that joined it would end with
// its end.
func lock(r *rand.Rand, order Order) string {
	if order.Want.State != task.Completed {
		return fmt.Sprintf("own %d", order.Number)
	}
	return fmt.Sprintf("key %d", r.IntN(lockKeys))
}

func pick(r *rand.Rand, table []deed, total int) deed {
	n := r.IntN(total)
	for _, d := range table {
		if n -= d.weight; n < 0 {
			return d
		}
	}
	return table[0]
}
