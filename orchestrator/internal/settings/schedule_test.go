package settings_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// What cannot be a schedule is refused with a reason that says what to write instead.
func TestScheduleRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		layer settings.Layer
		want  string
	}{
		{settings.Layer{}, `cron: "off" is off, and so is every`},
		{settings.Layer{"cron": "@daily", "every": "10m"}, `cron: "@daily" is there, and so is every, which is 10m`},
		{settings.Layer{"cron": "@every 10m"}, "is an interval; write it into every"},
		{settings.Layer{"cron": "CRON_TZ=UTC 0 3 * * *"}, "names a time zone; write it into time_zone"},
		{settings.Layer{"cron": "0 3 * *"}, "is not a cron expression"},
		{settings.Layer{"cron": "61 3 * * *"}, "is not a cron expression"},
		{settings.Layer{"cron": "0 3 30 2 *"}, "never comes due"},
		{settings.Layer{"every": "1500ms"}, "every is not in whole seconds"},
		{settings.Layer{"every": "10"}, "has no unit"},
		{settings.Layer{"every": "1h", "time_zone": "Berlin"}, "is not the name of a time zone"},
		{settings.Layer{"every": "1h", "time_zone": "Local"}, "is another one on each machine"},
		{settings.Layer{"every": "10m", "jitter": "10m"}, `jitter: "10m" is not shorter than the time between two runs, which is 10m`},
		{settings.Layer{"cron": "0,5 3 * * *", "jitter": "5m"}, "which is 5m"},
		{settings.Layer{"every": "1h", "overlap": "wait"}, "is not one of the choices"},
		{settings.Layer{"every": "1h", "payload": "[1]"}, "is not a JSON object"},
		{settings.Layer{"every": "1h", "payload": "{"}, "is not JSON"},
		{settings.Layer{"every": "1h", "queue": "x"}, "is not a setting"},
	} {
		_, err := settings.ResolveSchedule(c.layer)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want %q", c.layer, err, c.want)
		}
	}
}

// A schedule is changed, saved, taken back and comes back like a queue; a saved change that does not hold any more is left out.
func TestScheduleChanges(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	owner := settings.OfSchedule("s")
	change(t, s, owner, "every", "5m")
	if _, err := s.Apply([]settings.Change{{Queue: owner, Name: "cron", Value: "@daily"}}, "kim"); err == nil || !strings.HasPrefix(err.Error(), owner+".cron: ") {
		t.Errorf("cron beside every: %v", err)
	}
	if _, err := s.Apply([]settings.Change{{Queue: settings.OfSchedule("ss"), Name: "every", Value: "1h"}}, "kim"); err == nil || !strings.Contains(err.Error(), "is not a schedule of this manager") {
		t.Errorf("of one that is not there: %v", err)
	}
	var saved settings.Overlay
	if n, err := s.Save(func(o settings.Overlay) error { saved = o; return nil }); err != nil || n != 1 || saved.Schedules["s"]["every"] != "5m" {
		t.Errorf("saved %+v, %v", saved, err)
	}
	if v := valueOf(t, s, owner, "every"); v.From != settings.FromSaved || v.Below != "10m" || v.Value != "5m" {
		t.Errorf("it is listed as %+v", v)
	}
	if _, err := s.Undo("kim"); err != nil || s.Load().Schedules["s"].Every.Minutes() != 10 {
		t.Errorf("after undo: %+v, %v", s.Load().Schedules, err)
	}
	again, err := settings.NewStore(settings.Source{Schedules: map[string]settings.Layer{"s": {"every": "1h"}, "t": {"every": "1h"}}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	left := again.Restore(settings.Overlay{Schedules: map[string]settings.Layer{
		"s": {"every": "5m"}, "t": {"cron": "@daily"}, "u": {"every": "5m"},
	}}, "test")
	if now := again.Load().Schedules; len(left) != 2 || now["s"].Every.Minutes() != 5 || now["t"].Every.Hours() != 1 || now["t"].Cron != "" {
		t.Errorf("restored %+v, left out %v", now, left)
	}
	// One that goes takes its changes along, and what is saved comes back with it.
	rebase := func(edit func(*settings.Source)) {
		if _, err := again.Rebase("reload", edit); err != nil {
			t.Fatal(err)
		}
	}
	rebase(func(src *settings.Source) { delete(src.Schedules, "s") })
	rebase(func(src *settings.Source) { src.Schedules["s"] = settings.Layer{"every": "2h"} })
	if got := again.Load().Schedules["s"].Every.Minutes(); got != 5 {
		t.Errorf("after it came back it is due every %v minutes", got)
	}
	if _, err := again.Rebase("reload", func(src *settings.Source) { src.Schedules["s"] = settings.Layer{"cron": "@daily"} }); err == nil {
		t.Error("a file that does not hold with the live change was taken")
	} else if invalid := (*settings.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Problems[0].Queue != owner {
		t.Errorf("refused with %v", err)
	}
}
