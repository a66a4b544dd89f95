package settings

import (
	"maps"
	"strings"
)

// Source is what the settings are resolved from, below what was changed live.
type Source struct {
	// Manager is the manager's part of the configuration file.
	Manager Layer
	// Queues are all queues there are, by name.
	Queues map[string]QueueSource
	// Schedules are the parts of the configuration file of all schedules there are, by name.
	Schedules map[string]Layer
}

// QueueSource is what one queue is resolved from.
type QueueSource struct {
	// Plugin holds the default limits of the plugin's manifest.
	Plugin Layer
	// File holds the queue's part of the configuration file; it wins over Plugin.
	File Layer
}

func (s Source) clone() Source {
	c := Source{Manager: maps.Clone(s.Manager), Queues: make(map[string]QueueSource, len(s.Queues))}
	for name, q := range s.Queues {
		c.Queues[name] = QueueSource{Plugin: maps.Clone(q.Plugin), File: maps.Clone(q.File)}
	}
	c.Schedules = make(map[string]Layer, len(s.Schedules))
	for name, layer := range s.Schedules {
		c.Schedules[name] = maps.Clone(layer)
	}
	return c
}

// has reports whether there is the queue or schedule.
func (s Source) has(owner string) bool {
	if name, is := ScheduleOf(owner); is {
		_, ok := s.Schedules[name]
		return ok
	}
	_, ok := s.Queues[owner]
	return ok
}

// schedulePrefix stands before a schedule's name wherever a queue's name could stand, which has no colon.
const schedulePrefix = "schedule:"

// OfSchedule is how the settings of a schedule are addressed, where those of a queue are by its name.
func OfSchedule(name string) string { return schedulePrefix + name }

// ScheduleOf reads what OfSchedule made.
func ScheduleOf(owner string) (name string, is bool) { return strings.CutPrefix(owner, schedulePrefix) }

// scopeOf says whose setting it is, by its address.
func scopeOf(owner string) Scope {
	switch _, is := ScheduleOf(owner); {
	case is:
		return ScopeSchedule
	case owner == "":
		return ScopeManager
	default:
		return ScopeQueue
	}
}

// Overlay is what was changed live, over all that the Source says: by name of the setting, as text that a person wrote.
type Overlay struct {
	Manager   Layer
	Queues    map[string]Layer
	Schedules map[string]Layer
}

// Len is the number of settings in it.
func (o Overlay) Len() int {
	n := len(o.Manager)
	for _, layers := range []map[string]Layer{o.Queues, o.Schedules} {
		for _, layer := range layers {
			n += len(layer)
		}
	}
	return n
}

// Equal reports whether both say the same.
func (o Overlay) Equal(other Overlay) bool {
	if o.Len() != other.Len() || !maps.Equal(o.Manager, other.Manager) {
		return false
	}
	for name, layer := range o.Queues {
		if !maps.Equal(layer, other.Queues[name]) {
			return false
		}
	}
	for name, layer := range o.Schedules {
		if !maps.Equal(layer, other.Schedules[name]) {
			return false
		}
	}
	return true
}

func (o Overlay) clone() Overlay {
	c := Overlay{Manager: Layer{}, Queues: cloneLayers(o.Queues), Schedules: cloneLayers(o.Schedules)}
	maps.Copy(c.Manager, o.Manager)
	return c
}

// cloneLayers leaves out those that say nothing.
func cloneLayers(layers map[string]Layer) map[string]Layer {
	c := make(map[string]Layer, len(layers))
	for name, layer := range layers {
		if len(layer) > 0 {
			c[name] = maps.Clone(layer)
		}
	}
	return c
}

// layer returns the layer of the queue or schedule, or of the manager for "", to be written to.
func (o Overlay) layer(owner string) Layer {
	if owner == "" {
		return o.Manager
	}
	layers := o.Queues
	if name, is := ScheduleOf(owner); is {
		layers, owner = o.Schedules, name
	}
	if layers[owner] == nil {
		layers[owner] = Layer{}
	}
	return layers[owner]
}

// value returns what the overlay says of a setting, and whether it says anything.
func (o Overlay) value(owner, name string) (string, bool) {
	layer := o.Manager
	if schedule, is := ScheduleOf(owner); is {
		layer = o.Schedules[schedule]
	} else if owner != "" {
		layer = o.Queues[owner]
	}
	text, ok := layer[name]
	return text, ok
}

// without drops the queues and schedules that a source does not have.
func (o Overlay) without(source Source) Overlay {
	maps.DeleteFunc(o.Queues, func(name string, _ Layer) bool { return !source.has(name) })
	maps.DeleteFunc(o.Schedules, func(name string, _ Layer) bool { return !source.has(OfSchedule(name)) })
	return o
}
