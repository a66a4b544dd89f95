package budget

import (
	"cmp"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// shortage is what has to come free.
type shortage struct {
	processes int
	memory    settings.Bytes
}

func (s shortage) none() bool { return s.processes <= 0 && s.memory <= 0 }

func (s shortage) less(other shortage) shortage {
	return shortage{min(s.processes, other.processes), min(s.memory, other.memory)}
}

// kind is which processes of which queues may be asked for.
type kind struct {
	user   bool
	busy   bool
	kept   bool // also those that min_workers keeps
	spares bool // not of queues that want some themselves
	turn   bool // not the last one of a queue that got it a moment ago
}

// reclaim asks for processes: for what is over the limits, for users that wait, for system queues that wait, and for those that
// starve among equals.
func (s *sharing) reclaim() {
	leaving := shortage{}
	for _, p := range s.all {
		leaving.processes += p.Leaving
		leaving.memory += settings.Bytes(p.Leaving) * p.mean()
	}
	over := shortage{processes: -s.processes - leaving.processes}
	if s.limits.Memory > 0 {
		over.memory = -s.memory - leaving.memory
	}
	idleSystem, idleUser := kind{kept: true}, kind{user: true}
	taken := s.ask(over, idleSystem, idleUser)
	if over.processes -= taken.processes; over.processes > 0 {
		surplus := s.ask(shortage{processes: over.processes}, kind{busy: true}, kind{user: true, kept: true}, kind{user: true, busy: true})
		taken = shortage{taken.processes + surplus.processes, taken.memory + surplus.memory}
	}
	coming := shortage{leaving.processes + taken.processes, leaving.memory + taken.memory}

	users := s.waiting(true)
	short := s.short(users, coming)
	got := s.ask(short, idleSystem, kind{user: true, spares: true}, kind{busy: true})
	short = shortage{short.processes - got.processes, short.memory - got.memory}
	s.ask(s.starving(users).less(short), kind{user: true, kept: true, spares: true, turn: true}, kind{user: true, busy: true, turn: true})
	if len(users) > 0 {
		return
	}
	systems := s.waiting(false)
	short = s.short(systems, coming)
	got = s.ask(short, kind{spares: true})
	short = shortage{short.processes - got.processes, short.memory - got.memory}
	s.ask(s.starving(systems).less(short), kind{kept: true, spares: true, turn: true}, idleUser, kind{busy: true, turn: true})
}

// short is what the waiting queues lack beyond what is left and what is coming.
func (s *sharing) short(waiting []int, coming shortage) shortage {
	var short shortage
	for _, i := range waiting {
		short.processes += s.unmet[i]
		short.memory += settings.Bytes(s.unmet[i]) * s.all[i].size
	}
	if s.limits.Processes <= 0 {
		short.processes = 0
	}
	if s.limits.Memory <= 0 {
		short.memory = 0
	}
	if len(waiting) == 0 {
		return shortage{}
	}
	return shortage{short.processes - s.processes - coming.processes, short.memory - s.memory - coming.memory}
}

// starving is what the queues need that have waited for their first process for long.
func (s *sharing) starving(waiting []int) shortage {
	var need shortage
	for _, i := range waiting {
		if p := s.all[i]; p.starves(s.now) {
			need.processes++
			need.memory += p.size
			s.grants[i].Again = patience / 4 // those that have their turn may have had it by then
		} else if p.has == 0 {
			s.grants[i].Again = patience - s.now.Sub(p.since)
		}
	}
	return need
}

// ask asks for processes until a shortage is covered, kind after kind, of the queues with the most first. It returns what it got.
func (s *sharing) ask(need shortage, kinds ...kind) shortage {
	var got shortage
	for _, k := range kinds {
		for !need.none() {
			i := s.richest(k)
			if i < 0 {
				break
			}
			s.grants[i].Leave++
			size := s.all[i].mean()
			need.processes, got.processes = need.processes-1, got.processes+1
			need.memory, got.memory = need.memory-size, got.memory+size
		}
	}
	return got
}

// richest is the queue that the next process of a kind is asked of; -1 when there is none.
func (s *sharing) richest(k kind) int {
	best := -1
	for i, p := range s.all {
		if p.User == k.user && s.offers(i, k) > 0 && (best < 0 || s.richer(i, best)) {
			best = i
		}
	}
	return best
}

// richer reports whether a queue gives before another: it has more processes, or got its last one earlier.
func (s *sharing) richer(a, b int) bool {
	if c := cmp.Compare(s.stays(a), s.stays(b)); c != 0 {
		return c > 0
	}
	return s.all[a].served.Before(s.all[b].served)
}

// stays is how many processes of a queue are not on their way out.
func (s *sharing) stays(i int) int { return s.all[i].has - s.all[i].Leaving - s.grants[i].Leave }

// offers is how many processes of a kind a queue can still be asked for.
func (s *sharing) offers(i int, k kind) int {
	p, asked := s.all[i], s.grants[i].Leave
	if k.spares && s.unmet[i] > 0 || s.grants[i].Start > 0 || k.turn && s.stays(i) == 1 && s.now.Sub(p.served) < patience {
		return 0
	}
	if k.busy {
		return p.Idle + p.Busy - asked
	}
	idle := p.Idle
	if !k.kept {
		idle = min(idle, p.has-p.Leaving-p.Min)
	}
	return idle - asked
}
