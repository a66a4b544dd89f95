package top

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// model is what is shown, and what a key does to it.
type model struct {
	now     time.Time
	status  *apiv1.StatusResponse // the last answer; nil before the first
	failure string                // why there is no newer one; empty while there is
	samples []sample              // of the last seconds, the oldest first

	onWorkers bool // the selection is among the workers, not the queues
	queue     string
	worker    uint64
	sortQueue int
	sortWork  int

	help    bool
	message string
	asked   *action // waits for a yes
}

// sample is how many runs had ended at a moment, by queue.
type sample struct {
	at        time.Time
	pid       int32
	completed map[string]uint64
}

// rateTime is how far back rates look.
const rateTime = 5 * time.Second

// action is something that is asked of the manager.
type action struct {
	kind   string // "pause", "resume", "restart" or "kill"
	queue  string
	worker uint64
}

func (a action) question() string {
	return fmt.Sprintf("Kill worker %d? Its tasks go back to their queue.  y/N", a.worker)
}

// heard takes an answer of the manager, or the failure to get one.
func (m *model) heard(status *apiv1.StatusResponse, err error, now time.Time) {
	m.now = now
	if err != nil {
		m.failure = err.Error()
		return
	}
	m.failure, m.status = "", status
	s := sample{at: now, pid: status.GetManager().GetPid(), completed: map[string]uint64{}}
	for _, q := range status.GetQueues() {
		s.completed[q.GetName()] = q.GetCompleted()
	}
	if len(m.samples) > 0 && m.samples[0].pid != s.pid {
		m.samples = nil // another process counts from nothing
	}
	m.samples = append(m.samples, s)
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= rateTime {
		m.samples = m.samples[1:]
	}
	m.keepSelection()
}

// rate is how many runs of a queue completed a second lately; false when that is not known yet.
func (m *model) rate(queue string) (float64, bool) {
	if len(m.samples) < 2 {
		return 0, false
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	before, was := first.completed[queue]
	after := last.completed[queue]
	took := last.at.Sub(first.at).Seconds()
	if !was || took <= 0 || after < before {
		return 0, false
	}
	return float64(after-before) / took, true
}

// keepSelection selects something when what was selected has gone.
func (m *model) keepSelection() {
	queues, workers := m.queues(), m.workers()
	if !slices.ContainsFunc(queues, func(q *apiv1.Queue) bool { return q.GetName() == m.queue }) {
		m.queue = ""
		if len(queues) > 0 {
			m.queue = queues[0].GetName()
		}
	}
	if !slices.ContainsFunc(workers, func(w *apiv1.Worker) bool { return w.GetId() == m.worker }) {
		m.worker = 0
		if len(workers) > 0 {
			m.worker = workers[0].GetId()
		}
	}
}

// queueOrders and workerOrders are the ways to sort, in the order in which the key s goes through them.
func (m *model) queueOrders() []order[*apiv1.Queue] {
	return []order[*apiv1.Queue]{
		{"name", func(a, b *apiv1.Queue) int { return 0 }},
		{"waiting", func(a, b *apiv1.Queue) int { return cmp.Compare(b.GetWaiting(), a.GetWaiting()) }},
		{"running", func(a, b *apiv1.Queue) int { return cmp.Compare(b.GetRunning(), a.GetRunning()) }},
		{"rate", func(a, b *apiv1.Queue) int {
			x, _ := m.rate(a.GetName())
			y, _ := m.rate(b.GetName())
			return cmp.Compare(y, x)
		}},
		{"run time", func(a, b *apiv1.Queue) int { return cmp.Compare(b.GetRunP99Us(), a.GetRunP99Us()) }},
		{"failures", func(a, b *apiv1.Queue) int {
			return cmp.Compare(b.GetFailed()+b.GetKilled(), a.GetFailed()+a.GetKilled())
		}},
		{"dead", func(a, b *apiv1.Queue) int { return cmp.Compare(b.GetDead(), a.GetDead()) }},
	}
}

func workerOrders() []order[*apiv1.Worker] {
	return []order[*apiv1.Worker]{
		{"number", func(a, b *apiv1.Worker) int { return 0 }},
		{"queue", func(a, b *apiv1.Worker) int { return cmp.Compare(a.GetQueue(), b.GetQueue()) }},
		{"memory", func(a, b *apiv1.Worker) int { return cmp.Compare(b.GetRssBytes(), a.GetRssBytes()) }},
		{"age", func(a, b *apiv1.Worker) int { return cmp.Compare(a.GetStartedMs(), b.GetStartedMs()) }},
		{"tasks", func(a, b *apiv1.Worker) int { return cmp.Compare(b.GetTasks(), a.GetTasks()) }},
	}
}

type order[T any] struct {
	name    string
	compare func(a, b T) int
}

// queues are the manager's queues in the order that was chosen.
func (m *model) queues() []*apiv1.Queue {
	queues := slices.Clone(m.status.GetQueues())
	slices.SortFunc(queues, func(a, b *apiv1.Queue) int { return cmp.Compare(a.GetName(), b.GetName()) })
	slices.SortStableFunc(queues, m.queueOrders()[m.sortQueue].compare)
	return queues
}

// workers are the manager's workers in the order that was chosen.
func (m *model) workers() []*apiv1.Worker {
	workers := slices.Clone(m.status.GetWorkers())
	slices.SortFunc(workers, func(a, b *apiv1.Worker) int { return cmp.Compare(a.GetId(), b.GetId()) })
	slices.SortStableFunc(workers, workerOrders()[m.sortWork].compare)
	return workers
}
