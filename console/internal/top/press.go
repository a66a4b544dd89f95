package top

import (
	"fmt"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// press does what a key does. It returns what is to be asked of the manager, or nil.
func (m *model) press(k key) *action {
	if m.asked != nil {
		asked := m.asked
		m.asked = nil
		if k == keyYes {
			return asked
		}
		m.message = "nothing was done"
		return nil
	}
	m.message = ""
	if m.help {
		m.help = false
		return nil
	}
	switch k {
	case keyUp:
		m.move(-1)
	case keyDown:
		m.move(1)
	case keySwitch:
		m.onWorkers = !m.onWorkers
	case keySort:
		m.resort()
	case keyHelp:
		m.help = true
	case keyPause:
		return m.pause()
	case keyRestart:
		return m.restart()
	case keyKill:
		m.kill()
	default:
	}
	return nil
}

// move moves the selection by step.
func (m *model) move(step int) {
	if m.onWorkers {
		m.worker = neighbour(m.workers(), m.worker, step, (*apiv1.Worker).GetId)
		return
	}
	m.queue = neighbour(m.queues(), m.queue, step, (*apiv1.Queue).GetName)
}

// neighbour is the key of the element that lies step away from the one with the key at, within the list.
func neighbour[T any, K comparable](all []T, at K, step int, keyOf func(T) K) K {
	for i, x := range all {
		if keyOf(x) == at {
			return keyOf(all[min(max(0, i+step), len(all)-1)])
		}
	}
	return at
}

func (m *model) resort() {
	if m.onWorkers {
		m.sortWork = (m.sortWork + 1) % len(workerOrders())
		m.message = "workers by " + workerOrders()[m.sortWork].name
		return
	}
	orders := m.queueOrders()
	m.sortQueue = (m.sortQueue + 1) % len(orders)
	m.message = "queues by " + orders[m.sortQueue].name
}

// chosenQueue is the queue that is selected, or that of the selected worker.
func (m *model) chosenQueue() *apiv1.Queue {
	name := m.queue
	if w := m.chosenWorker(); m.onWorkers && w != nil {
		name = w.GetQueue()
	}
	for _, q := range m.status.GetQueues() {
		if q.GetName() == name {
			return q
		}
	}
	return nil
}

func (m *model) chosenWorker() *apiv1.Worker {
	for _, w := range m.status.GetWorkers() {
		if w.GetId() == m.worker {
			return w
		}
	}
	return nil
}

// pause pauses the queue, or resumes one that does not take tasks.
func (m *model) pause() *action {
	q := m.chosenQueue()
	switch {
	case q == nil:
		m.message = "there is no queue"
		return nil
	case q.GetState() == "ok":
		return &action{kind: "pause", queue: q.GetName()}
	default:
		return &action{kind: "resume", queue: q.GetName()}
	}
}

func (m *model) restart() *action {
	if !m.onWorkers {
		if q := m.chosenQueue(); q != nil {
			return &action{kind: "restart", queue: q.GetName()}
		}
	} else if w := m.chosenWorker(); w != nil {
		return &action{kind: "restart", worker: w.GetId()}
	}
	m.message = "there is nothing to restart"
	return nil
}

// kill asks first.
func (m *model) kill() {
	w := m.chosenWorker()
	switch {
	case !m.onWorkers:
		m.message = "select a worker first: Tab goes to the workers"
	case w == nil:
		m.message = "there is no worker"
	default:
		m.asked = &action{kind: "kill", worker: w.GetId()}
	}
}

// did takes the end of an action.
func (m *model) did(a action, err error) {
	what := a.queue
	if what == "" {
		what = fmt.Sprintf("worker %d", a.worker)
	}
	if err != nil {
		m.message = fmt.Sprintf("%s %s: %v", a.kind, what, err)
		return
	}
	m.message = map[string]string{
		"pause": what + " is paused in all managers", "resume": what + " takes tasks again", "restart": what + ": restarting after its tasks", "kill": what + " is killed",
	}[a.kind]
}
