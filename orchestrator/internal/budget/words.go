package budget

import (
	"fmt"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// explain says to each queue why it gets no more, or is asked for processes.
func (s *sharing) explain() {
	users, systems := s.waiting(true), s.waiting(false)
	for i, p := range s.all {
		g := &s.grants[i]
		switch {
		case g.Leave > 0:
			g.Why = s.whyLeave(i, users, systems)
		case s.unmet[i] == 0:
			if p.Wants > 0 && s.limits.Memory > 0 && p.size > s.limits.Memory {
				g.Why = fmt.Sprintf("max_memory is %s, and a worker takes about %s: one runs at a time, raise max_memory", s.limits.Memory, about(p.size))
			}
		case !p.User && len(users) > 0:
			g.Why = fmt.Sprintf("the user queue %s waits for a worker, and system queues come after it", s.all[users[0]].name)
		case s.processes <= 0:
			g.Why = fmt.Sprintf("the manager has the %d workers that max_processes allows", s.limits.Processes)
		case s.memory < p.size:
			g.Why = fmt.Sprintf("a worker takes about %s, and %s of max_memory %s are left", about(p.size), about(max(0, s.memory)), s.limits.Memory)
		default:
			g.Why = "another queue has waited longer for its first worker"
		}
	}
}

// whyLeave says for whom a queue is asked for processes.
func (s *sharing) whyLeave(i int, users, systems []int) string {
	switch {
	case len(users) > 0 && users[0] != i:
		return fmt.Sprintf("the user queue %s waits for a worker", s.all[users[0]].name)
	case s.processes < 0:
		return fmt.Sprintf("there are more workers than max_processes %d allows", s.limits.Processes)
	case s.limits.Memory > 0 && s.memory < 0:
		return fmt.Sprintf("the workers take more than max_memory %s", s.limits.Memory)
	case len(systems) > 0 && systems[0] != i:
		return fmt.Sprintf("queue %s waits for a worker", s.all[systems[0]].name)
	default:
		return "other queues wait for workers"
	}
}

func about(b settings.Bytes) string { return fmt.Sprintf("%d MiB", (b+settings.MiB/2)/settings.MiB) }
