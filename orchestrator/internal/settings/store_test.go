package settings_test

import (
	"bytes"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

func newStore(t *testing.T) *settings.Store {
	t.Helper()
	s, err := settings.NewStore(settings.Source{
		Manager: settings.Layer{"drain_timeout": "20s"},
		Queues: map[string]settings.QueueSource{
			"a": {Plugin: settings.Layer{"slots": "4"}, File: settings.Layer{"max_workers": "8"}},
			"b": {},
		},
		Schedules: map[string]settings.Layer{"s": {"every": "10m", "payload": `{"a":1}`}},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// whole fails unless every queue of the snapshot would be accepted as it stands.
func whole(t *testing.T, snap *settings.Snapshot) {
	t.Helper()
	for name, q := range snap.Queues {
		if again, err := settings.ResolveQueue(q.Layer()); err != nil || again != q {
			t.Errorf("version %d, queue %s does not hold: %v\n%+v\n%+v", snap.Version, name, err, q, again)
		}
	}
	for name, x := range snap.Schedules {
		if again, err := settings.ResolveSchedule(x.Layer()); err != nil || again != x {
			t.Errorf("version %d, schedule %s does not hold: %v\n%+v\n%+v", snap.Version, name, err, x, again)
		}
	}
	if again, err := settings.ResolveManager(snap.Manager.Layer()); err != nil || again != snap.Manager {
		t.Errorf("version %d, manager does not hold: %v", snap.Version, err)
	}
}

// All changes of one call are made together, over what the file and the plugin say; unset brings those back.
func TestApply(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	first := s.Load()
	if a, ok := first.Queue("a"); !ok || a.Slots != 4 || a.MaxWorkers != 8 || first.Version != 1 || first.Manager.DrainTimeout != 20*time.Second {
		t.Fatalf("first snapshot: %+v", first)
	}
	snap, err := s.Apply([]settings.Change{
		{Queue: "a", Name: "min_workers", Value: "9"}, {Queue: "a", Name: "max_workers", Value: "10"}, {Name: "drain_timeout", Value: "off"},
	}, "kim")
	if err != nil {
		t.Fatal(err)
	}
	if a := snap.Queues["a"]; a.MinWorkers != 9 || a.MaxWorkers != 10 || snap.Version != 2 || snap.Manager.DrainTimeout != 0 || s.Load() != snap {
		t.Errorf("after the change: %+v", snap)
	}
	if a := first.Queues["a"]; a.MaxWorkers != 8 || first.Version != 1 {
		t.Errorf("the old snapshot was changed: %+v", first)
	}
	snap, err = s.Apply([]settings.Change{
		{Queue: "a", Name: "min_workers", Unset: true}, {Queue: "a", Name: "max_workers", Unset: true}, {Name: "drain_timeout", Unset: true},
	}, "kim")
	if err != nil || !reflect.DeepEqual(snap.Queues, first.Queues) || snap.Manager != first.Manager || snap.Version != 3 {
		t.Errorf("after unset: %+v, %v", snap, err)
	}
	if same, err := s.Apply(nil, "kim"); err != nil || same != snap {
		t.Errorf("no change made a new snapshot: %+v, %v", same, err)
	}
}

// One wrong change refuses all of them, every problem is named, and the old snapshot stays.
func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		changes []settings.Change
		want    []string
	}{
		{"range", []settings.Change{{Queue: "a", Name: "buffer", Value: "8"}, {Queue: "b", Name: "slots", Value: "0"}, {Name: "start_timeout", Value: "1h"}},
			[]string{`start_timeout: "1h" is above 10m;`, `b.slots: "0" is below 1;`}},
		{"rule over layers", []settings.Change{{Queue: "a", Name: "min_workers", Value: "9"}}, []string{`a.min_workers: "9" is more than max_workers, which is 8;`}},
		{"unknown names", []settings.Change{{Queue: "c", Name: "slots", Value: "1"}, {Queue: "a", Name: "slot", Value: "1"}, {Queue: "a", Name: "drain_timeout", Value: "1s"}},
			[]string{"c: is not a queue of this manager", "a.slot: is not a setting of the queue; did you mean slots?", "a.drain_timeout: is not a setting of the queue"}},
		{"unset of nothing", []settings.Change{{Queue: "a", Name: "nope", Unset: true}}, []string{"a.nope: is not a setting"}},
		{"twice", []settings.Change{{Queue: "a", Name: "slots", Value: "1"}, {Queue: "a", Name: "slots", Value: "2"}}, []string{`a.slots: "2" is changed twice at once`}},
	}
	for _, tt := range tests {
		s := newStore(t)
		old := s.Load()
		snap, err := s.Apply(tt.changes, "kim")
		if snap != nil || s.Load() != old {
			t.Errorf("%s: the settings changed", tt.name)
		}
		got := problems(t, err)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v; want %d problems", tt.name, err, len(tt.want))
			continue
		}
		for i, want := range tt.want {
			if !strings.HasPrefix(got[i].String(), want) {
				t.Errorf("%s: got %s; want %s...", tt.name, got[i], want)
			}
		}
	}
}

// A source that does not hold makes no store.
func TestNewStoreRefuses(t *testing.T) {
	t.Parallel()
	_, err := settings.NewStore(settings.Source{
		Manager: settings.Layer{"x": "1"},
		Queues:  map[string]settings.QueueSource{"q": {Plugin: settings.Layer{"slots": "0"}, File: settings.Layer{"buffer": "x"}}},
	}, slog.New(slog.DiscardHandler))
	if got := problems(t, err); len(got) != 3 {
		t.Errorf("got %v; want 3 problems", err)
	}
}

// A new source lies under the live changes; a queue that goes takes its live changes along; a bad source changes nothing.
func TestRebase(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	if _, err := s.Apply([]settings.Change{{Queue: "a", Name: "buffer", Value: "3"}, {Queue: "b", Name: "buffer", Value: "3"}}, "kim"); err != nil {
		t.Fatal(err)
	}
	var kept map[string]settings.QueueSource
	snap, err := s.Rebase("reload", func(src *settings.Source) {
		delete(src.Queues, "b")
		src.Queues["a"] = settings.QueueSource{File: settings.Layer{"max_workers": "2", "buffer": "5"}}
		src.Queues["c"] = settings.QueueSource{}
		kept = src.Queues
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := snap.Queues["a"]; len(snap.Queues) != 2 || a.MaxWorkers != 2 || a.Buffer != 3 || a.Slots != 1 {
		t.Errorf("after the reload: %+v", snap)
	}
	kept["a"].File["max_workers"] = "999" // the caller's own copy: the store must not see it
	if snap, err = s.Rebase("reload", func(src *settings.Source) { src.Queues["b"] = settings.QueueSource{} }); err != nil {
		t.Fatal(err)
	}
	if snap.Queues["b"].Buffer != 16 || snap.Queues["a"].MaxWorkers != 2 {
		t.Errorf("after b came back: %+v", snap)
	}
	if _, err = s.Rebase("reload", func(src *settings.Source) { src.Manager = settings.Layer{"drain_timeout": "soon"} }); err == nil || s.Load() != snap {
		t.Errorf("a bad source was taken: %v", err)
	}
}

// Every change is logged with who made it, from what to what; a refused one leaves no line that says otherwise.
func TestChangesAreLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, err := settings.NewStore(settings.Source{Queues: map[string]settings.QueueSource{"a": {}}}, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply([]settings.Change{{Queue: "a", Name: "slots", Value: "0"}}, "kim"); err == nil || out.Len() > 0 {
		t.Fatalf("refused with %v, logged %s", err, &out)
	}
	if _, err := s.Apply([]settings.Change{{Queue: "a", Name: "slots", Value: "3"}, {Name: "drain_timeout", Value: "1m"}}, "kim"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rebase("reload", func(src *settings.Source) { src.Queues = map[string]settings.QueueSource{"z": {}} }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"who=kim version=2 queue=a setting=slots from=1 to=3", "who=kim version=2 setting=drain_timeout from=30s to=1m",
		`"queue added" who=reload version=3 queue=z`, `"queue removed" who=reload version=3 queue=a`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line with %s in\n%s", want, &out)
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 4 {
		t.Errorf("%d lines, want 4:\n%s", lines, &out)
	}
}

// A queue that comes back has what is saved for it, as after a restart, and not when that does not hold any more.
func TestRebaseBringsBackWhatIsSaved(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	change(t, s, "b", "buffer", "3")
	change(t, s, "b", "min_workers", "2")
	if _, err := s.Save(func(settings.Overlay) error { return nil }); err != nil {
		t.Fatal(err)
	}
	with := func(b *settings.QueueSource) settings.Queue {
		snap, err := s.Rebase("reload", func(src *settings.Source) {
			delete(src.Queues, "b")
			if b != nil {
				src.Queues["b"] = *b
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return snap.Queues["b"]
	}
	with(nil)
	if q := with(&settings.QueueSource{File: settings.Layer{"max_workers": "4"}}); q.Buffer != 3 || q.MinWorkers != 2 {
		t.Errorf("what was saved is not there: %+v", q)
	}
	if v := valueOf(t, s, "b", "buffer"); v.From != settings.FromSaved {
		t.Errorf("%+v", v)
	}
	with(nil)
	if q := with(&settings.QueueSource{File: settings.Layer{"max_workers": "1"}}); q.Buffer != 16 || q.MinWorkers != 0 {
		t.Errorf("what was saved does not hold with max_workers 1: %+v", q)
	}
}
