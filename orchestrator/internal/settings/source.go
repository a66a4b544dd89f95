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

// live is what was changed while the manager runs.
type live struct {
	manager Layer
	queues  map[string]Layer
}

func (l live) clone() live {
	c := live{manager: Layer{}, queues: make(map[string]Layer, len(l.queues))}
	maps.Copy(c.manager, l.manager)
	for name, layer := range l.queues {
		c.queues[name] = maps.Clone(layer)
	}
	return c
}

// layer returns the layer of the queue, or of the manager for "", to be written to.
func (l live) layer(queue string) Layer {
	if queue == "" {
		return l.manager
	}
	if l.queues[queue] == nil {
		l.queues[queue] = Layer{}
	}
	return l.queues[queue]
}
