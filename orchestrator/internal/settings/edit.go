package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxUndo is how many changes can be taken back. Each is a few texts, so it is far more than a person makes between two looks.
const maxUndo = 1000

// ErrNothingToUndo says that no change is left to be taken back.
var ErrNothingToUndo = errors.New("there is no change to take back: none was made since the manager's start, or all have been taken back")

// VersionError says that the settings were changed since the caller looked at them.
type VersionError struct {
	Wanted, Now Version
}

// Error says both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the settings have version %d by now, not %d: somebody changed them meanwhile; look at them again", e.Now, e.Wanted)
}

// Edit is some changes that are made together.
type Edit struct {
	Changes []Change
	Who     string
	// DryRun only says what would be.
	DryRun bool
	// IfVersion refuses the changes, with a *VersionError, when the settings have another version; 0 does not ask.
	IfVersion Version
}

// Made is the settings before and after a change. After a dry run After has no version.
type Made struct {
	Before, After *Snapshot
}

// Edit makes all changes or none, as Apply does, and remembers what was before so that Undo can bring it back.
func (s *Store) Edit(e Edit) (Made, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.Load()
	if e.IfVersion != 0 && e.IfVersion != before.Version {
		return Made{}, &VersionError{Wanted: e.IfVersion, Now: before.Version}
	}
	if len(e.Changes) == 0 {
		return Made{Before: before, After: before}, nil
	}
	if problems := s.misaddressed(e.Changes); len(problems) > 0 {
		return Made{}, asError(problems)
	}
	next := s.live.clone()
	for _, c := range e.Changes {
		if c.Unset {
			delete(next.layer(c.Queue), c.Name)
			continue
		}
		next.layer(c.Queue)[c.Name] = c.Value
	}
	if e.DryRun {
		after, err := build(s.source, next)
		return Made{Before: before, After: after}, err
	}
	old := s.live
	after, err := s.swap(s.source, next, e.Who)
	if err != nil {
		return Made{}, err
	}
	if !old.Equal(next) {
		s.past = append(s.past, old)
		s.past = s.past[max(0, len(s.past)-maxUndo):]
	}
	return Made{Before: before, After: after}, nil
}

// Undo takes the last change back that Edit or Apply made, however often the file below was read again since. What has been
// saved stays in the overlay file until the next save. The error is ErrNothingToUndo, or an *InvalidError when what was
// before does not hold any more with the file of today; nothing changes then.
func (s *Store) Undo(who string) (Made, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.Load()
	if len(s.past) == 0 {
		return Made{}, ErrNothingToUndo
	}
	last := len(s.past) - 1
	after, err := s.swap(s.source, s.past[last].clone().without(s.source), who+" (undo)")
	if err != nil {
		return Made{}, err
	}
	s.past = s.past[:last]
	return Made{Before: before, After: after}, nil
}

// Restore lays what an overlay file says over the source, before anybody has changed anything. A part of it, the manager's or
// a queue's, that does not hold with the file of today is left out as a whole; the problems say why. So is a queue that is gone.
func (s *Store) Restore(o Overlay, who string) []Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	o = o.clone()
	var left []Problem
	if _, err := ResolveManager(s.source.Manager, o.Manager); err != nil {
		left = append(left, problemsOf("", err)...)
		o.Manager = Layer{}
	}
	for name, layer := range o.Queues {
		source, ok := s.source.Queues[name]
		if !ok {
			left = append(left, Problem{Queue: name, Reason: "is not a queue of this manager any more"})
			delete(o.Queues, name)
			continue
		}
		if _, err := ResolveQueue(source.Plugin, source.File, layer); err != nil {
			left = append(left, problemsOf(name, err)...)
			delete(o.Queues, name)
		}
	}
	for name, layer := range o.Schedules {
		owner := OfSchedule(name)
		if !s.source.has(owner) {
			left = append(left, Problem{Queue: owner, Reason: "is not a schedule of this manager any more"})
			delete(o.Schedules, name)
			continue
		}
		if _, err := ResolveSchedule(s.source.Schedules[name], layer); err != nil {
			left = append(left, problemsOf(owner, err)...)
			delete(o.Schedules, name)
		}
	}
	slices.SortFunc(left, func(a, b Problem) int { return strings.Compare(a.Queue+" "+a.Name, b.Queue+" "+b.Name) })
	if _, err := s.swap(s.source, o, who); err != nil { // each part holds, so the whole does
		return append(left, problemsOf("", err)...)
	}
	s.saved = o.clone()
	return left
}

func problemsOf(queue string, err error) []Problem {
	if err == nil {
		return nil
	}
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		return []Problem{{Queue: queue, Reason: err.Error()}}
	}
	problems := slices.Clone(invalid.Problems)
	for i := range problems {
		problems[i].Queue = queue
	}
	return problems
}

// Save writes what was changed live with write, which no change can overtake, and takes note that it is saved.
func (s *Store) Save(write func(Overlay) error) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := write(s.live.clone()); err != nil {
		return 0, err
	}
	s.saved = s.live.clone()
	return s.live.Len(), nil
}
