package schedule_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/client/direct"
)

// whole fails unless, of all due times up to the last that was decided, each was run once or is counted as skipped or missed.
func (r *rig) whole(layer settings.Layer, began time.Time) {
	r.t.Helper()
	s := spec(r.t, layer)
	table, err := s.Timetable(name)
	if err != nil {
		r.t.Fatal(err)
	}
	state, runs := r.look(s), r.submitted()
	for i := 1; i < len(runs); i++ {
		if !runs[i].After(runs[i-1]) {
			r.t.Errorf("%s was run twice", runs[i])
		}
	}
	due := int64(0)
	for at := table.Next(began); !at.After(state.Decided); at = table.Next(at) {
		due++
	}
	if int64(len(runs)) != state.Fired || due != state.Fired+state.Skipped+state.Missed {
		r.t.Errorf("%d runs, %d due times: fired %d, skipped %d, missed %d\n%s", len(runs), due, state.Fired, state.Skipped, state.Missed, r.story())
	}
}

// Three managers hold one schedule: every due time is run once, none is left out, and none comes early.
func TestOnceForManyManagers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	layer := settings.Layer{"overlap": "allow"}
	for _, m := range []string{"a", "b", "c"} {
		r.start(m, spec(t, layer))
	}
	r.eventually("some have begun", func() bool { return r.rdb.Exists(t.Context(), r.keys.Schedule(name)).Val() == 1 })
	began := r.look(spec(t, layer)).Decided
	r.eventually("five runs", func() bool { return len(r.submitted()) >= 5 })
	r.whole(layer, began)
	if state := r.look(spec(t, layer)); state.Missed+state.Skipped != 0 {
		t.Errorf("missed %d, skipped %d, with managers there all the time", state.Missed, state.Skipped)
	}
	for _, d := range r.told() {
		if d.Verdict != direct.TurnFired || d.ID.Queue != queue || d.Late < 0 || d.Missed > 0 || d.Late > within {
			t.Errorf("decided %+v", d)
		}
	}
}

// Managers come and go at any moment, and so does Redis, frozen and killed: every due time is run once or counted as missed, never both.
func TestOnceWhateverDies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	layer := settings.Layer{"overlap": "allow"}
	s := spec(t, layer)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	managers := make([]*manager, 3)
	names := []string{"a", "b", "c"}
	for i := range managers {
		managers[i] = r.start(names[i], s)
	}
	r.eventually("some have begun", func() bool { return r.rdb.Exists(t.Context(), r.keys.Schedule(name)).Val() == 1 })
	began := r.look(s).Decided
	for range 25 {
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond) //nolint:forbidigo // chaos at any moment
		i := random.IntN(len(managers))
		switch random.IntN(8) {
		case 0:
			r.redis.Freeze()
			time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond) //nolint:forbidigo // longer than a call may take
			r.redis.Thaw()
		case 1:
			r.redis.Stop()
			time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond) //nolint:forbidigo // some due times
			r.redis.Start()
		default:
			managers[i].end()
			managers[i] = r.start(names[i], s)
		}
	}
	runs := len(r.submitted())
	r.eventually("it goes on", func() bool { return len(r.submitted()) >= runs+2 })
	for _, m := range managers {
		m.end()
	}
	r.whole(layer, began)
	if runs < 5 {
		t.Errorf("%d runs: the test tests little", runs)
	}
}

// What passed while nobody was there is run once or not at all, as the schedule says, and counted.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		catchUp string
		runs    int
		missed  int64
	}{{"last", 1, 9}, {"none", 0, 10}} {
		t.Run(c.catchUp, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := spec(t, settings.Layer{"every": "1h", "catch_up": c.catchUp})
			r.start("a", s).end()
			now := r.rdb.Time(t.Context()).Val()
			if hour := now.Truncate(time.Hour); now.Sub(hour) < 2*time.Minute { // then the last is no more than a little late
				t.Skip("too near to a full hour")
			}
			r.ago(10 * time.Hour)
			r.start("a", s)
			r.eventually("it is decided", func() bool { return r.look(s).Missed == c.missed })
			r.eventually("it is told", func() bool { return len(r.told()) == 1 })
			if runs := r.submitted(); len(runs) != c.runs || c.runs == 1 && !runs[0].Equal(now.Truncate(time.Hour)) {
				t.Errorf("runs: %v", runs)
			}
			if state := r.look(s); !state.Decided.Equal(now.Truncate(time.Hour)) {
				t.Errorf("decided up to %s", state.Decided)
			}
		})
	}
}

// A schedule that is new, one whose times have changed and one that was switched on begin now: nothing of the past is run. One whose
// payload has changed goes on, and what passed meanwhile is caught up.
func TestBeginsNow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		first, then settings.Layer
		runs        int
	}{
		{"other times", settings.Layer{"every": "2h"}, settings.Layer{"every": "1h"}, 0},
		{"other zone", settings.Layer{"every": "off", "cron": "@hourly"}, settings.Layer{"every": "off", "cron": "@hourly", "time_zone": "Europe/Berlin"}, 0},
		{"switched on", settings.Layer{"every": "1h", "enabled": "false"}, settings.Layer{"every": "1h"}, 0},
		{"other payload", settings.Layer{"every": "1h"}, settings.Layer{"every": "1h", "payload": `{"a":1}`, "jitter": "1s"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			m := r.start("a", spec(t, c.first))
			r.eventually("it has begun", func() bool { return r.rdb.HLen(t.Context(), r.keys.Schedule(name)).Val() >= 2 })
			if now := r.rdb.Time(t.Context()).Val(); now.Sub(now.Truncate(time.Hour)) < 2*time.Minute {
				t.Skip("too near to a full hour")
			}
			m.end()
			r.ago(10 * time.Hour)
			m = r.start("a", spec(t, c.then))
			r.eventually("it goes on", func() bool {
				state := r.look(spec(t, c.then))
				return time.Until(state.Decided) > -2*time.Hour
			})
			m.end()
			if runs := r.submitted(); len(runs) != c.runs {
				t.Errorf("runs: %v", runs)
			}
		})
	}
}
