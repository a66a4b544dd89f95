package timetable

import "time"

// CatchUp says what becomes of due times that passed while no manager was there to see them.
type CatchUp string

// The ways to catch up.
const (
	// CatchUpLast runs the last of them.
	CatchUpLast CatchUp = "last"
	// CatchUpNone runs none of them.
	CatchUpNone CatchUp = "none"
)

// Grace is how late a run may begin and still count as being on time: for CatchUpNone, that is the time of a restart.
const Grace = time.Minute

// Turn is what is to be done next.
type Turn struct {
	// Due is the due time that is decided; zero when none comes.
	Due time.Time
	// At is when: not before it.
	At time.Time
	// Run is false when Due and what was before it are only missed.
	Run bool
	// Missed is how many due times are missed with this, Due included when it does not run; at most maxMissed are counted.
	Missed int
}

// maxMissed bounds the due times that are counted one by one.
const maxMissed = 10_000

// Decide says what is to be done next, when all due times up to one were decided, and now is the time.
func (t *Timetable) Decide(decided, now time.Time, catchUp CatchUp) Turn {
	due := t.Next(decided)
	if due.IsZero() || t.FireAt(due).After(now) {
		return Turn{Due: due, At: t.FireAt(due), Run: true}
	}
	missed := 0
	for next := t.Next(due); !next.IsZero() && !t.FireAt(next).After(now); next = t.Next(next) {
		due = next
		if missed++; missed == maxMissed {
			due = t.last(due, now)
			break
		}
	}
	turn := Turn{Due: due, At: t.FireAt(due), Run: true, Missed: missed}
	if catchUp == CatchUpNone && now.Sub(turn.At) > Grace {
		turn.Run = false
		turn.Missed++
	}
	return turn
}

// last is the last due time that has come, of many after one that has: it is looked for in ever longer stretches before now.
func (t *Timetable) last(due, now time.Time) time.Time {
	for stretch := time.Minute; now.Add(-stretch).After(due); stretch *= 8 {
		found := time.Time{}
		for next := t.Next(now.Add(-stretch)); !next.IsZero() && !t.FireAt(next).After(now); next = t.Next(next) {
			found = next
		}
		if !found.IsZero() {
			return found
		}
	}
	for next := t.Next(due); !next.IsZero() && !t.FireAt(next).After(now); next = t.Next(next) {
		due = next
	}
	return due
}
