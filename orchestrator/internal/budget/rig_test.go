package budget_test

import (
	"slices"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// queue is a pool as the budget sees it, driven by hand.
type queue struct {
	*budget.Seat
	t      *testing.T
	name   string
	user   bool
	min    int
	demand int // processes that it has work for
	size   settings.Bytes

	starting, idle, busy, leaving int
	kicked                        bool
	last                          budget.Grant
}

// house is a budget with queues.
type house struct {
	t      *testing.T
	limits budget.Limits
	*budget.Budget
	queues []*queue
}

func newHouse(t *testing.T, limits budget.Limits) *house {
	h := &house{t: t, limits: limits}
	h.Budget = budget.New(func() budget.Limits { return h.limits })
	return h
}

func (h *house) add(name string, user bool) *queue {
	q := &queue{t: h.t, name: name, user: user, size: 10 * settings.MiB}
	q.Seat = h.Join(name, "plugin of "+name, func() { q.kicked = true })
	h.queues = append(h.queues, q)
	return q
}

func (q *queue) has() int { return q.starting + q.idle + q.busy + q.leaving }

// look does what a pool does when it looks at its number of processes.
func (q *queue) look() {
	q.kicked = false
	q.work()
	wants := max(0, max(q.demand, q.min)-q.starting-q.idle-q.busy)
	q.last = q.Ask(budget.Need{User: q.user, Wants: wants, Min: q.min, Idle: q.idle, Busy: q.busy, Leaving: q.leaving})
	if q.last.Start > wants || q.last.Leave > q.idle+q.busy {
		q.t.Errorf("%s wants %d, has %d idle and %d busy, and got %+v", q.name, wants, q.idle, q.busy, q.last)
	}
	q.starting += q.last.Start
	idle := min(q.idle, q.last.Leave)
	busy := min(q.busy, q.last.Leave-idle)
	q.idle, q.busy, q.leaving = q.idle-idle, q.busy-busy, q.leaving+idle+busy
}

// work gives work to idle processes.
func (q *queue) work() {
	n := min(q.idle, q.demand-q.busy)
	if n > 0 {
		q.idle, q.busy = q.idle-n, q.busy+n
	}
}

// started makes all starts ready, left ends all processes that leave, done ends all work.
func (q *queue) started() { q.idle, q.starting = q.idle+q.starting, 0; q.work(); q.weigh() }

func (q *queue) left() {
	for range q.leaving {
		q.Give()
	}
	q.leaving = 0
	q.weigh()
}

func (q *queue) done() { q.idle, q.busy, q.demand = q.idle+q.busy, 0, 0 }

func (q *queue) weigh() {
	if n := q.idle + q.busy + q.leaving; n > 0 {
		q.Weigh(n, settings.Bytes(n)*q.size)
	}
}

// settle lets the queues that were kicked look until none is.
func (h *house) settle() {
	h.t.Helper()
	for range 1000 {
		i := slices.IndexFunc(h.queues, func(q *queue) bool { return q.kicked })
		if i < 0 {
			return
		}
		h.queues[i].look()
		h.check()
	}
	h.t.Fatal("the queues kick each other without end")
}

// check checks the limits.
func (h *house) check() {
	h.t.Helper()
	total := 0
	for _, q := range h.queues {
		total += q.has()
	}
	if h.limits.Processes > 0 && total > h.limits.Processes {
		h.t.Fatalf("%d processes, the limit is %d", total, h.limits.Processes)
	}
}

// pass lets time pass in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
