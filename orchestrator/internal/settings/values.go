package settings

import (
	"maps"
	"slices"
)

// Where a value comes from.
const (
	FromDefault = "default" // the table
	FromPlugin  = "plugin"  // the manifest of the queue's plugin
	FromFile    = "file"    // the configuration
	FromSaved   = "saved"   // a live change that has been saved
	FromLive    = "live"    // a live change that a restart forgets
)

// Value is one setting as it is now.
type Value struct {
	Setting
	// Queue is empty for a setting of the manager, and OfSchedule for one of a schedule.
	Queue string
	Value string
	// From is where the value comes from.
	From string
	// Below is the value without what was changed live.
	Below string
	// Saved is what the overlay file holds; empty for nothing.
	Saved string
}

// Listing is all settings at one moment.
type Listing struct {
	Version Version
	// Values are the manager's settings, then those of each queue and of each schedule, in the order of the table.
	Values []Value
	// UndoSteps is how many changes can be taken back.
	UndoSteps int
}

// List returns every setting with its value and where that comes from.
func (s *Store) List() Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.Load()
	list := Listing{Version: snap.Version, UndoSteps: len(s.past)}
	below, err := build(s.source, Overlay{})
	if err != nil {
		below = snap // the source held when it came in
	}
	list.Values = s.append(list.Values, "", managerRows(), snap.Manager.Layer(), below.Manager.Layer(), []named{{FromFile, s.source.Manager}})
	for _, name := range slices.Sorted(maps.Keys(snap.Queues)) {
		source := s.source.Queues[name]
		layers := []named{{FromFile, source.File}, {FromPlugin, source.Plugin}}
		list.Values = s.append(list.Values, name, queueRows(), snap.Queues[name].Layer(), below.Queues[name].Layer(), layers)
	}
	for _, name := range slices.Sorted(maps.Keys(snap.Schedules)) {
		layers := []named{{FromFile, s.source.Schedules[name]}}
		list.Values = s.append(list.Values, OfSchedule(name), rowsOf(ScopeSchedule), snap.Schedules[name].Layer(), below.Schedules[name].Layer(), layers)
	}
	return list
}

// named is a layer below the live changes, and what it is called.
type named struct {
	from  string
	layer Layer
}

// append adds the settings of one scope. layers are the highest first. mu is held.
func (s *Store) append(values []Value, queue string, rows []Setting, now, below Layer, layers []named) []Value {
	for _, row := range rows {
		v := Value{Setting: row, Queue: queue, Value: now[row.Name], Below: below[row.Name], From: FromDefault}
		for _, l := range layers {
			if _, ok := l.layer[row.Name]; ok {
				v.From = l.from
				break
			}
		}
		saved, isSaved := s.saved.value(queue, row.Name)
		v.Saved = saved
		if text, ok := s.live.value(queue, row.Name); ok {
			v.From = FromLive
			if isSaved && saved == text {
				v.From = FromSaved
			}
		}
		values = append(values, v)
	}
	return values
}

func managerRows() []Setting { return rowsOf(ScopeManager) }
func queueRows() []Setting   { return rowsOf(ScopeQueue) }

func rowsOf(scope Scope) []Setting {
	return slices.DeleteFunc(Describe(), func(s Setting) bool { return s.Scope != scope })
}
