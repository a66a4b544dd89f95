package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/schedule"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
)

// An earlier run that has not ended keeps the next from beginning: it is left out and counted, and the first due time after the end
// is run.
func TestOverlapSkip(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, settings.Layer{"overlap": "skip"})
	r.start("a", s)
	r.start("b", s)
	r.eventually("two are skipped", func() bool { return r.look(s).Skipped >= 2 })
	state := r.look(s)
	if state.Fired != 1 || len(r.submitted()) != 1 {
		t.Errorf("fired %d, %d in the queue", state.Fired, len(r.submitted()))
	}
	r.end(state.Last)
	r.eventually("the next is run", func() bool { return r.look(s).Fired == 2 })
	if again := r.look(s); !again.LastDue.After(state.LastDue) || again.Last == state.Last || again.LastBy == "" || again.LastAt.IsZero() {
		t.Errorf("the run after the end: %+v", again)
	}
}

// With queue the next run waits for the end of the earlier one, one at most, and then runs at once, once.
func TestOverlapQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, settings.Layer{"overlap": "queue"})
	r.start("a", s)
	r.start("b", s)
	r.eventually("one waits, and one before it gave way", func() bool { return r.look(s).Skipped >= 1 })
	state := r.look(s)
	if state.Fired != 1 || state.Queued.IsZero() || len(r.submitted()) != 1 {
		t.Errorf("fired %d, waits %s, %d in the queue", state.Fired, state.Queued, len(r.submitted()))
	}
	r.end(state.Last)
	r.eventually("what waited runs", func() bool { return r.look(s).Fired >= 2 })
	r.eventually("more are run", func() bool {
		if last := r.look(s).Last; !last.IsZero() {
			r.end(last)
		}
		return r.look(s).Fired >= 4
	})
}

// With replace the earlier run is cancelled, and the new one runs when it has ended; a run that is not heard to end is not overtaken.
func TestOverlapReplace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, settings.Layer{"overlap": "replace"})
	r.start("a", s)
	r.eventually("one is cancelled and the next is there", func() bool { return r.look(s).Fired >= 2 })
	cancelled := 0
	for _, d := range r.told() {
		if d.Verdict == direct.TurnFired {
			got, err := direct.New(r.rdb, nil).Get(t.Context(), d.ID)
			if err == nil && got.State == task.Cancelled {
				cancelled++
			}
		}
	}
	if cancelled == 0 {
		t.Errorf("no run was cancelled: %s", r.story())
	}
	// One that a manager has taken ends only when that manager says so.
	last := r.look(s).Last
	r.rdb.LRem(t.Context(), r.keys.Pending(), 0, last.Key)
	r.rdb.LPush(t.Context(), r.keys.Active(), last.Key)
	r.rdb.HSet(t.Context(), r.keys.Task(last.Key), "state", task.AsynqActive)
	if state := r.look(s); state.Last != last {
		t.Skip("the machine was too slow for this part")
	}
	r.eventually("the next waits", func() bool { return r.look(s).Replace == last })
	skipped := r.look(s).Skipped
	r.eventually("due times pass", func() bool { return r.look(s).Skipped >= skipped+2 })
	if state := r.look(s); state.Last != last {
		t.Error("it was overtaken")
	}
}

// A paused schedule is not run by any manager, pausing it twice changes nothing, and resumed it goes on with the next due time; what
// passed is neither run nor missed. A run by hand works all the same.
func TestPause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, settings.Layer{"overlap": "allow"})
	a := r.start("a", s)
	r.start("b", s)
	r.eventually("it runs", func() bool { return r.look(s).Fired >= 1 })
	if changed, err := a.Pause(t.Context(), s, "kim"); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if changed, err := a.Pause(t.Context(), s, "lee"); err != nil || changed {
		t.Error("paused twice", err)
	}
	state := r.look(s)
	if state.PausedBy != "kim" || state.Paused.IsZero() || schedule.Next(s, state, 5) != nil {
		t.Errorf("paused: %+v", state)
	}
	r.eventually("due times pass", func() bool { return r.look(s).Now.Sub(state.Paused) > 2500*time.Millisecond })
	if now := r.look(s); now.Fired != state.Fired {
		t.Errorf("it ran %d times while it was paused", now.Fired-state.Fired)
	}
	id, err := a.Fire(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if now := r.look(s); now.Last != id || now.Fired != state.Fired+1 || !now.LastDue.IsZero() {
		t.Errorf("after a run by hand: %+v", now)
	}
	if changed, err := a.Resume(t.Context(), s); err != nil || !changed {
		t.Fatal(changed, err)
	}
	resumed := r.look(s).Decided
	r.eventually("it goes on", func() bool { return r.look(s).Fired >= state.Fired+3 })
	if now := r.look(s); now.Missed != 0 || now.Skipped != 0 {
		t.Errorf("missed %d, skipped %d", now.Missed, now.Skipped)
	}
	for _, due := range r.submitted() {
		if due.After(state.Paused) && due.Before(resumed) {
			t.Errorf("%s was run, which passed during the pause", due)
		}
	}
}

// What a queue does not take is told, decides nothing, and goes on when it does.
func TestPayloadThatDoesNotFit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.announce(task.Entry{Queue: queue, Kind: "tick", Schema: `{"type":"object","required":["url"]}`})
	bad, good := spec(t, nil), spec(t, settings.Layer{"payload": `{"url":"x"}`})
	a := r.start("a", bad)
	r.eventually("it is told", func() bool { return errors.Is(a.Problem(name), client.ErrInvalidPayload) })
	if state := r.look(bad); state.Fired+state.Skipped+state.Missed != 0 {
		t.Errorf("decided: %+v", state)
	}
	if _, err := a.Fire(t.Context(), bad); !errors.Is(err, client.ErrInvalidPayload) {
		t.Errorf("by hand: %v", err)
	}
	a.change(good)
	r.eventually("it runs", func() bool { return r.look(good).Fired >= 1 })
	r.eventually("nothing is wrong any more", func() bool { return a.Problem(name) == nil })
}

// A schedule that is taken away or switched off in one manager goes on in the other.
func TestTakenAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, settings.Layer{"overlap": "allow"})
	a, b := r.start("a", s), r.start("b", s)
	r.eventually("it runs", func() bool { return r.look(s).Fired >= 1 })
	off := spec(t, settings.Layer{"overlap": "allow", "enabled": "false"})
	a.change()
	b.change(off)
	fired := r.look(s).Fired
	since := r.look(s).Now
	r.eventually("due times pass", func() bool { return r.look(s).Now.Sub(since) > 2500*time.Millisecond })
	if now := r.look(s).Fired; now > fired+1 { // one may have been on its way
		t.Errorf("it ran %d times when nobody had it", now-fired)
	}
	a.change(s)
	r.eventually("it runs again", func() bool { return r.look(s).Fired > fired+1 })
}
