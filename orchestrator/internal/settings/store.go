package settings

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Change is one setting to be changed.
type Change struct {
	// Queue is empty for a setting of the manager, and OfSchedule for one of a schedule; here and wherever settings are addressed.
	Queue string
	Name  string
	// Value is the text as a person writes it; not looked at when Unset.
	Value string
	// Unset takes the live value away, so that what the file, the plugin or the table says holds again.
	Unset bool
}

// Store holds the settings of one manager. Any number of goroutines may read and change it at once.
type Store struct {
	log     *slog.Logger
	current atomic.Pointer[Snapshot]

	// mu is held by those who change something, never by those who read a snapshot.
	mu       sync.Mutex
	source   Source
	live     Overlay
	saved    Overlay   // what lies in the overlay file
	past     []Overlay // what live was before the latest changes, the oldest first
	watchers map[chan *Snapshot]struct{}
}

// NewStore resolves the source into the snapshot with version 1. The error is an *InvalidError with every problem.
func NewStore(source Source, log *slog.Logger) (*Store, error) {
	none := Overlay{}.clone()
	s := &Store{log: log, source: source.clone(), live: none, saved: none, watchers: make(map[chan *Snapshot]struct{})}
	first, err := build(s.source, s.live)
	if err != nil {
		return nil, err
	}
	first.Version = 1
	s.current.Store(first)
	return s, nil
}

// Load returns the settings that hold now. It never blocks.
func (s *Store) Load() *Snapshot { return s.current.Load() }

// Apply makes all changes or none. The result is validated as a whole before anybody sees it; the error is an *InvalidError
// with every problem, and then the old settings stay. Each change is logged with who made it. No changes: nothing happens.
func (s *Store) Apply(changes []Change, who string) (*Snapshot, error) {
	made, err := s.Edit(Edit{Changes: changes, Who: who})
	if err != nil {
		return nil, err
	}
	return made.After, nil
}

// Rebase changes what lies below the live changes: a configuration that was read again, a plugin that was replaced, a queue
// that comes or goes. edit gets a copy of the source and must not call the store. Live changes stay, except those of a queue
// that is gone; one that comes has what is saved for it, as after a restart, if that holds. On an error the old settings and the old
// source stay.
func (s *Store) Rebase(who string, edit func(*Source)) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	source := s.source.clone()
	edit(&source)
	source = source.clone()
	next := s.live.clone().without(source)
	for name, q := range source.Queues {
		if _, known := s.source.Queues[name]; known || len(s.saved.Queues[name]) == 0 {
			continue
		}
		if _, err := ResolveQueue(q.Plugin, q.File, s.saved.Queues[name]); err != nil {
			s.log.Warn("the saved settings of a queue that comes are not used", "queue", name, "error", err)
			continue
		}
		next.Queues[name] = maps.Clone(s.saved.Queues[name])
	}
	s.bringBack(source, next)
	return s.swap(source, next, who)
}

// bringBack gives the schedules that come what is saved for them. mu is held.
func (s *Store) bringBack(source Source, next Overlay) {
	for name, layer := range source.Schedules {
		saved := s.saved.Schedules[name]
		if s.source.has(OfSchedule(name)) || len(saved) == 0 {
			continue
		}
		if _, err := ResolveSchedule(layer, saved); err != nil {
			s.log.Warn("the saved settings of a schedule that comes are not used", "schedule", name, "error", err)
			continue
		}
		next.Schedules[name] = maps.Clone(saved)
	}
}

// misaddressed finds what would get lost on the way into a layer: queues and settings that do not exist, and two changes of one.
func (s *Store) misaddressed(changes []Change) []Problem {
	var problems []Problem
	seen := make(map[Change]bool)
	for _, c := range changes {
		scope := scopeOf(c.Queue)
		if scope != ScopeManager && !s.source.has(c.Queue) {
			problems = append(problems, Problem{Queue: c.Queue, Reason: s.unknown(c.Queue)})
			continue
		}
		if names := Names(scope); !slices.Contains(names, c.Name) {
			reason := "is not a setting of the " + string(scope) + hint(c.Name, names)
			problems = append(problems, Problem{Queue: c.Queue, Name: c.Name, Reason: reason})
			continue
		}
		key := Change{Queue: c.Queue, Name: c.Name}
		if seen[key] {
			problems = append(problems, Problem{Queue: c.Queue, Name: c.Name, Value: c.Value, Reason: "is changed twice at once; say it once"})
		}
		seen[key] = true
	}
	return problems
}

// unknown says that there is no such queue or schedule.
func (s *Store) unknown(owner string) string {
	if name, is := ScheduleOf(owner); is {
		return "is not a schedule of this manager" + hint(name, slices.Sorted(maps.Keys(s.source.Schedules)))
	}
	return "is not a queue of this manager" + hint(owner, slices.Sorted(maps.Keys(s.source.Queues)))
}

// swap is the only place where the settings change. mu is held.
func (s *Store) swap(source Source, next Overlay, who string) (*Snapshot, error) {
	snap, err := build(source, next)
	if err != nil {
		return nil, err
	}
	old := s.Load()
	snap.Version = old.Version + 1
	s.source, s.live = source, next
	s.current.Store(snap)
	s.tell(snap)
	logChanges(s.log.With("who", who, "version", snap.Version), old, snap)
	return snap, nil
}

func build(source Source, over Overlay) (*Snapshot, error) {
	var problems []Problem
	snap := &Snapshot{Queues: make(map[string]Queue, len(source.Queues)), Schedules: make(map[string]Schedule, len(source.Schedules))}
	snap.Manager, problems = resolve(managerFields(), nil, []Layer{source.Manager, over.Manager})
	fields, rules := queueFields(), queueRules()
	for _, name := range slices.Sorted(maps.Keys(source.Queues)) {
		q, found := resolve(fields, rules, []Layer{source.Queues[name].Plugin, source.Queues[name].File, over.Queues[name]})
		for _, p := range found {
			p.Queue = name
			problems = append(problems, p)
		}
		snap.Queues[name] = q
	}
	for _, name := range slices.Sorted(maps.Keys(source.Schedules)) {
		x, err := ResolveSchedule(source.Schedules[name], over.Schedules[name])
		problems = append(problems, problemsOf(OfSchedule(name), err)...)
		snap.Schedules[name] = x
	}
	return snap, asError(problems)
}
