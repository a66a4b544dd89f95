package budget

import (
	"cmp"
	"slices"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// patience is how long a queue without any process waits before an equal has to let a busy one go, and at least how long each
// has its turn when there are more queues than processes.
const patience = 2 * time.Second

// party is one queue as the sharing sees it.
type party struct {
	Need
	name          string
	has           int // processes, those that start included
	since, served time.Time
	memory        settings.Bytes // of all its processes
	size          settings.Bytes // that one more will take
}

// mean is the memory of one of its processes.
func (p party) mean() settings.Bytes {
	if p.has == 0 {
		return p.size
	}
	return p.memory / settings.Bytes(p.has)
}

// starves reports whether a queue has waited for its first process for long.
func (p party) starves(now time.Time) bool {
	return p.Wants > 0 && p.has == 0 && now.Sub(p.since) >= patience
}

// sharing is a share on its way.
type sharing struct {
	limits Limits
	now    time.Time
	all    []party
	grants []Grant
	unmet  []int // wanted processes that were not granted

	processes int            // that are left
	memory    settings.Bytes // that is left; negative when there is too much
	one       bool           // nothing runs: one process may start whatever its memory
}

// share returns what each queue gets. It is a pure function:
//   - never more processes than the limit, nor a start that does not fit the memory, except a first one when nothing runs;
//   - user queues first; while one of them waits, no system queue gets anything;
//   - among equals those without a process first, then who has waited longest, one process at a time;
//   - processes are asked for in the order idle of system queues, idle of user queues above their min, busy of system queues, and
//     no more of them than are needed; those that leave already count;
//   - a queue without a process gets one of an equal after its patience, if need be a busy one after its jobs.
func share(limits Limits, now time.Time, all []party) []Grant {
	s := newSharing(limits, now, all)
	if limits.none() {
		for i, p := range all {
			s.grants[i].Start = p.Wants
		}
		return s.grants
	}
	s.grant(true)
	if s.waiting(true) == nil {
		s.grant(false)
	}
	s.reclaim()
	s.explain()
	return s.grants
}

func newSharing(limits Limits, now time.Time, all []party) *sharing {
	s := &sharing{limits: limits, now: now, all: all, grants: make([]Grant, len(all)), unmet: make([]int, len(all)), processes: NoLimit, memory: settings.Bytes(1) << 60}
	total, memory := 0, settings.Bytes(0)
	for i, p := range all {
		total += p.has
		memory += p.memory
		s.unmet[i] = max(0, p.Wants)
	}
	if limits.Processes > 0 {
		s.processes = limits.Processes - total
	}
	if limits.Memory > 0 {
		s.memory = limits.Memory - memory
	}
	s.one = total == 0
	return s
}

// waiting are the queues of a class that want more than they got, in the order of their turns.
func (s *sharing) waiting(user bool) []int {
	var waiting []int
	for i, p := range s.all {
		if p.User == user && s.unmet[i] > 0 {
			waiting = append(waiting, i)
		}
	}
	slices.SortStableFunc(waiting, func(a, b int) int {
		x, y := s.all[a], s.all[b]
		if (x.has == 0) != (y.has == 0) {
			return cmp.Compare(min(x.has, 1), min(y.has, 1))
		}
		return x.since.Compare(y.since)
	})
	return waiting
}

// grant gives what is left to the queues of a class, in turns. One that starves is not passed by smaller ones.
func (s *sharing) grant(user bool) {
	for progress := true; progress; {
		progress = false
		for _, i := range s.waiting(user) {
			p := s.all[i]
			if s.processes <= 0 || !s.one && s.memory < p.size {
				if p.starves(s.now) && s.grants[i].Start == 0 {
					return
				}
				continue
			}
			s.grants[i].Start++
			s.unmet[i]--
			s.processes--
			s.memory -= p.size
			s.one, progress = false, true
		}
	}
}

// spare reports whether a queue may have one process more that it does not need.
func spare(limits Limits, all []party, index int) bool {
	s := newSharing(limits, time.Time{}, all)
	for _, p := range all {
		if p.Wants > 0 && (p.User || !all[index].User) {
			return false
		}
	}
	return s.processes > 0 && s.memory >= all[index].size
}
