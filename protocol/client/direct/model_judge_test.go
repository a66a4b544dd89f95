package direct_test

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
)

// condition is what the model knows of a task.
type condition int

const (
	absent condition = iota // never submitted, or nothing is left of it
	living                  // it has not ended
	kept                    // it has ended, and its record lies in Redis
	buried                  // it has ended, and is a dead letter
)

// subject is a task of the model, through all its lives.
type subject struct {
	id      task.ID
	payload map[string]any
	state   condition
	ends    []end
	missing []span // when it was not there; the last may go on still
}

// span is from one number of the clock to another.
type span struct {
	from, to int
	at       time.Time // of its beginning
}

const still = math.MaxInt

// end is one end of a task.
type end struct {
	state            task.State
	recorded, buried bool
	token            string // tells it from every other end; empty for one that the client made itself
	seen             span   // from its beginning until it could not be read any more
}

// waiter is one subscription.
type waiter struct {
	number int
	ids    []task.ID
	since  int // its beginning on the clock
	began  time.Time
	limit  time.Duration // its deadline; 0 for none
	slow   time.Duration // what it takes over one update
	cancel context.CancelFunc

	stands bool             // it is registered, and has looked at its tasks
	owed   map[task.ID]bool // the tasks whose end it must be told, because it stood
	free   time.Time        // since when it is ready for the next update
	got    map[task.ID]answer
	err    error
	over   bool
	took   time.Duration
}

// answer is one end that a waiter was told.
type answer struct {
	at     int
	when   time.Time
	ready  time.Time // from when on the waiter and its way could be told
	owed   bool      // it stood when the task ended, and nothing broke since: it must not be told that there is no such task
	update client.Update
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (w *world) index(s *subject) int { return slices.Index(w.tasks, s) }

func (w *world) numbers(ids []task.ID) []int {
	var all []int
	for i, s := range w.tasks {
		if slices.Contains(ids, s.id) {
			all = append(all, i)
		}
	}
	return all
}

// manager returns a client whose way is sound.
func (w *world) manager() *direct.Client { return direct.New(w.rdb, quiet()) }

// begin notes that a life of a task has begun; what was left of the one before is gone.
func (w *world) begin(s *subject) {
	now := w.note("  that life has begun")
	w.closeEnd(s, now)
	if n := len(s.missing); n > 0 && s.missing[n-1].to == still {
		s.missing[n-1].to = now
	} else if s.state == absent { // never there
		s.missing = append(s.missing, span{0, now, w.began})
	}
	s.state = living
}

// ended notes an end.
func (w *world) ended(s *subject, before int, e end) {
	e.seen = span{before, still, time.Now()}
	w.note("  that end is written")
	s.ends = append(s.ends, e)
	w.mu.Lock()
	for _, r := range w.waiters {
		if r.stands && slices.Contains(r.ids, s.id) {
			r.owed[s.id] = true
		}
	}
	w.mu.Unlock()
	switch {
	case e.buried:
		s.state = buried
	case e.recorded:
		s.state = kept
	default:
		s.state = absent // its event may be on its way until the next life begins
		s.missing = append(s.missing, span{before, still, time.Now()})
	}
}

// forget notes that nothing is left of a task.
func (w *world) forget(s *subject) {
	now := w.note("  nothing is left of it")
	w.closeEnd(s, now)
	s.state = absent
	s.missing = append(s.missing, span{now - 1, still, time.Now()})
}

func (w *world) closeEnd(s *subject, now int) {
	if n := len(s.ends); n > 0 && s.ends[n-1].seen.to == still {
		s.ends[n-1].seen.to = now
	}
}

// judge holds what a waiter was told against what happened.
func (w *world) judge(r *waiter) {
	w.t.Helper()
	for id, a := range r.got {
		s := w.tasks[slices.IndexFunc(w.tasks, func(s *subject) bool { return s.id == id })]
		switch {
		case a.update.Unknown:
			w.judgeUnknown(r, s, a)
		case a.update.Ended == nil:
			w.failed("waiter %d was told nothing of task %d: %+v", r.number, w.index(s), a.update)
		default:
			w.judgeEnd(r, s, a)
		}
	}
}

func (w *world) judgeUnknown(r *waiter, s *subject, a answer) {
	w.t.Helper()
	if a.owed {
		w.failed("waiter %d was told at %d that task %d is unknown, and it stood there when the task ended", r.number, a.at, w.index(s))
	}
	since, found := time.Time{}, false
	for _, m := range s.missing {
		if m.from <= a.at && m.to >= r.since && !found {
			since, found = m.at, true
		}
	}
	if !found {
		w.failed("waiter %d was told at %d that task %d is unknown, and it was there all the time", r.number, a.at, w.index(s))
	}
	w.judgeTime(r, s, a, since)
}

func (w *world) judgeEnd(r *waiter, s *subject, a answer) {
	w.t.Helper()
	since, found := time.Time{}, false
	for _, e := range s.ends {
		if e.tells(a.update.Ended) && e.seen.from <= a.at && e.seen.to >= r.since {
			since, found = e.seen.at, true
		}
	}
	if !found {
		w.failed("waiter %d was told at %d that task %d ended as %s with %s, which is no end that it could see", r.number, a.at, w.index(s), a.update.Ended.State, token(a.update.Ended))
	}
	w.judgeTime(r, s, a, since)
}

// judgeTime wants an answer soon after there is one, and a way for it.
func (w *world) judgeTime(r *waiter, s *subject, a answer, since time.Time) {
	w.t.Helper()
	if late := a.when.Sub(later(since, a.ready)); late > promptly {
		w.failed("waiter %d was told at %d of task %d, %s late", r.number, a.at, w.index(s), late)
	}
}

// tells reports whether a record may be that of an end. An event alone, and a dead letter without its record, say no more than the state.
func (e end) tells(t *task.Task) bool {
	told := token(t)
	return e.state == t.State && (told == "" || e.token == "" || told == e.token)
}

func token(t *task.Task) string {
	switch {
	case t.Manager != "model":
		return ""
	case t.Fault != nil:
		return t.Fault.Message
	default:
		return string(t.Result)
	}
}
