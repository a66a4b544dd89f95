package settings_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

func change(t *testing.T, s *settings.Store, queue, name, value string) settings.Made {
	t.Helper()
	made, err := s.Edit(settings.Edit{Changes: []settings.Change{{Queue: queue, Name: name, Value: value}}, Who: "kim"})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func valueOf(t *testing.T, s *settings.Store, queue, name string) settings.Value {
	t.Helper()
	for _, v := range s.List().Values {
		if v.Queue == queue && v.Name == name {
			return v
		}
	}
	t.Fatalf("%s.%s is not listed", queue, name)
	return settings.Value{}
}

// A dry run says what would be and changes nothing, and refuses what the change itself would be refused for.
func TestDryRun(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	old := s.Load()
	made, err := s.Edit(settings.Edit{Changes: []settings.Change{{Queue: "a", Name: "max_workers", Value: "3"}}, DryRun: true})
	if err != nil || made.Before != old || made.After.Queues["a"].MaxWorkers != 3 {
		t.Errorf("%+v, %v", made, err)
	}
	if _, err := s.Edit(settings.Edit{Changes: []settings.Change{{Queue: "a", Name: "max_workers", Value: "x"}}, DryRun: true}); err == nil {
		t.Error("a wrong value was not refused")
	}
	if s.Load() != old || s.List().UndoSteps != 0 {
		t.Error("the dry run changed something")
	}
}

// A change for an older version is refused: two operators do not overwrite each other unseen.
func TestIfVersion(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	seen := s.Load().Version
	change(t, s, "a", "buffer", "5")
	_, err := s.Edit(settings.Edit{Changes: []settings.Change{{Queue: "a", Name: "buffer", Value: "6"}}, IfVersion: seen})
	var stale *settings.VersionError
	if !errors.As(err, &stale) || stale.Now != seen+1 || s.Load().Queues["a"].Buffer != 5 {
		t.Errorf("%v", err)
	}
	if _, err := s.Edit(settings.Edit{Changes: []settings.Change{{Queue: "a", Name: "buffer", Value: "6"}}, IfVersion: seen + 1}); err != nil {
		t.Error(err)
	}
}

// Undo takes changes back one by one to the very start, survives that the file is read again, and says when there is nothing
// left. What was before is checked against the file of today.
func TestUndo(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	if _, err := s.Undo("kim"); !errors.Is(err, settings.ErrNothingToUndo) {
		t.Errorf("at the start: %v", err)
	}
	change(t, s, "a", "min_workers", "6")
	change(t, s, "a", "min_workers", "7")
	change(t, s, "a", "min_workers", "2")
	if _, err := s.Rebase("reload", func(source *settings.Source) {
		source.Queues["a"] = settings.QueueSource{File: settings.Layer{"max_workers": "6"}}
	}); err != nil {
		t.Fatal(err)
	}
	now := s.Load()
	if _, err := s.Undo("kim"); len(problems(t, err)) != 1 || s.Load() != now {
		t.Errorf("back to min_workers 7 over max_workers 6: %v", err)
	}
	if _, err := s.Rebase("reload", func(source *settings.Source) {
		source.Queues["a"] = settings.QueueSource{File: settings.Layer{"max_workers": "16"}}
		delete(source.Queues, "b")
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{7, 6, 0} {
		made, err := s.Undo("kim")
		if err != nil || made.After.Queues["a"].MinWorkers != want || made.After.Queues["a"].MaxWorkers != 16 {
			t.Errorf("undo to %d: %+v, %v", want, made.After, err)
		}
	}
	if _, err := s.Undo("kim"); !errors.Is(err, settings.ErrNothingToUndo) {
		t.Errorf("at the end: %v", err)
	}
	if v := valueOf(t, s, "a", "min_workers"); v.From != settings.FromDefault {
		t.Errorf("after all undos it comes from %s", v.From)
	}
}

// However many random changes, valid or not, as many undos as there are steps lead back to where the first of them began.
func TestUndoRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable
		s := newStore(t)
		var trail []*settings.Snapshot
		for range 19 { // so that none is forgotten
			before := s.Load()
			steps := s.List().UndoSteps
			if _, err := s.Edit(settings.Edit{Changes: []settings.Change{
				{Queue: "a", Name: "max_workers", Value: fmt.Sprint(r.IntN(12))}, {Queue: "b", Name: "buffer", Value: fmt.Sprint(r.IntN(3)), Unset: r.IntN(2) == 0},
			}}); err != nil {
				continue
			}
			if after := s.List().UndoSteps; after > steps {
				trail = append(trail, before)
			}
		}
		for s.List().UndoSteps > 0 {
			want := trail[len(trail)-1]
			trail = trail[:len(trail)-1]
			made, err := s.Undo("kim")
			if err != nil || made.After.Queues["a"] != want.Queues["a"] || made.After.Queues["b"] != want.Queues["b"] {
				t.Fatalf("seed %d: undo gave %+v, %v; want %+v", seed, made.After, err, want)
			}
		}
	}
}

// What is saved is what was changed live; each value says where it comes from, and what it would be without the change.
func TestSaveAndList(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	change(t, s, "a", "max_workers", "9")
	change(t, s, "", "drain_timeout", "5s")
	var written settings.Overlay
	n, err := s.Save(func(o settings.Overlay) error { written = o; return nil })
	if err != nil || n != 2 || written.Queues["a"]["max_workers"] != "9" || written.Manager["drain_timeout"] != "5s" {
		t.Fatalf("saved %d, %+v, %v", n, written, err)
	}
	change(t, s, "a", "buffer", "3")
	if _, err := s.Save(func(settings.Overlay) error { return errors.New("disk full") }); err == nil {
		t.Error("a failed save was not told")
	}
	for _, want := range []struct{ queue, name, value, from, below, saved string }{
		{"a", "max_workers", "9", settings.FromSaved, "8", "9"},
		{"", "drain_timeout", "5s", settings.FromSaved, "20s", "5s"},
		{"a", "buffer", "3", settings.FromLive, "16", ""},
		{"a", "slots", "4", settings.FromPlugin, "4", ""},
		{"b", "slots", "1", settings.FromDefault, "1", ""},
	} {
		v := valueOf(t, s, want.queue, want.name)
		if v.Value != want.value || v.From != want.from || v.Below != want.below || v.Saved != want.saved {
			t.Errorf("%s.%s: %+v, want %+v", want.queue, want.name, v, want)
		}
	}
	change(t, s, "a", "max_workers", "10")
	if v := valueOf(t, s, "a", "max_workers"); v.From != settings.FromLive || v.Saved != "9" {
		t.Errorf("changed again: %+v", v)
	}
	if l := s.List(); l.Version != s.Load().Version || l.UndoSteps != 4 || len(l.Values) != len(settings.Names(settings.ScopeManager))+2*len(settings.Names(settings.ScopeQueue))+len(settings.Names(settings.ScopeSchedule)) {
		t.Errorf("listed %d values, version %d, %d undo steps", len(l.Values), l.Version, l.UndoSteps)
	}
}

// At the start the saved changes lie over the file; a part that does not hold any more is left out as a whole and told, and the
// rest holds. It is no change that can be taken back.
func TestRestore(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	left := s.Restore(settings.Overlay{
		Manager: settings.Layer{"drain_timeout": "x"},
		Queues: map[string]settings.Layer{
			"a":    {"max_workers": "3"},
			"b":    {"min_workers": "5", "buffer": "3"}, // max_workers is 4
			"gone": {"slots": "2"},
		},
	}, "saved settings")
	if len(left) != 3 || left[0].Name != "drain_timeout" || left[1].Queue != "b" || left[1].Name != "min_workers" || left[2].Queue != "gone" {
		t.Errorf("left out: %v", left)
	}
	snap := s.Load()
	if snap.Queues["a"].MaxWorkers != 3 || snap.Queues["b"].Buffer != 16 || s.List().UndoSteps != 0 {
		t.Errorf("restored: %+v", snap)
	}
	if v := valueOf(t, s, "a", "max_workers"); v.From != settings.FromSaved || v.Below != "8" {
		t.Errorf("%+v", v)
	}
	if _, err := s.Edit(settings.Edit{Changes: []settings.Change{{Queue: "a", Name: "max_workers", Unset: true}}}); err != nil || s.Load().Queues["a"].MaxWorkers != 8 {
		t.Errorf("a saved value cannot be taken away: %v", err)
	}
}
