package settings

import "maps"

// Source is what the settings are resolved from, below what was changed live.
type Source struct {
	// Manager is the manager's part of the configuration file.
	Manager Layer
	// Queues are all queues there are, by name.
	Queues map[string]QueueSource
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
	return c
}

// Overlay is what was changed live, over all that the Source says: by name of the setting, as text that a person wrote.
type Overlay struct {
	Manager Layer
	Queues  map[string]Layer
}

// Len is the number of settings in it.
func (o Overlay) Len() int {
	n := len(o.Manager)
	for _, layer := range o.Queues {
		n += len(layer)
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
	return true
}

func (o Overlay) clone() Overlay {
	c := Overlay{Manager: Layer{}, Queues: make(map[string]Layer, len(o.Queues))}
	maps.Copy(c.Manager, o.Manager)
	for name, layer := range o.Queues {
		if len(layer) > 0 {
			c.Queues[name] = maps.Clone(layer)
		}
	}
	return c
}

// layer returns the layer of the queue, or of the manager for "", to be written to.
func (o Overlay) layer(queue string) Layer {
	if queue == "" {
		return o.Manager
	}
	if o.Queues[queue] == nil {
		o.Queues[queue] = Layer{}
	}
	return o.Queues[queue]
}

// value returns what the overlay says of a setting, and whether it says anything.
func (o Overlay) value(queue, name string) (string, bool) {
	layer := o.Manager
	if queue != "" {
		layer = o.Queues[queue]
	}
	text, ok := layer[name]
	return text, ok
}

// without drops the queues that a source does not have.
func (o Overlay) without(source Source) Overlay {
	for name := range o.Queues {
		if _, ok := source.Queues[name]; !ok {
			delete(o.Queues, name)
		}
	}
	return o
}
