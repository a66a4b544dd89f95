package settings

import (
	"maps"
	"slices"
)

// Layer is a set of values by the name of the setting, as text that a person wrote.
type Layer map[string]string

// ResolveQueue lays the layers over the table's defaults, lowest first, and validates the whole. The error is an
// *InvalidError with every problem: unknown names, values that cannot be read or are out of range, broken rules.
func ResolveQueue(layers ...Layer) (Queue, error) {
	q, problems := resolve(queueFields(), queueRules(), layers)
	return q, asError(problems)
}

// ResolveManager does for the manager's settings what ResolveQueue does for a queue's.
func ResolveManager(layers ...Layer) (Manager, error) {
	m, problems := resolve(managerFields(), nil, layers)
	return m, asError(problems)
}

// ResolveSchedule does for a schedule's settings what ResolveQueue does for a queue's.
func ResolveSchedule(layers ...Layer) (Schedule, error) {
	s, problems := resolve(scheduleFields(), scheduleRules(), layers)
	return s, asError(problems)
}

// Layer writes all settings of the schedule in their canonical form; ResolveSchedule reads back the same.
func (s Schedule) Layer() Layer { return encode(scheduleFields(), &s) }

// Layer writes all settings of the queue in their canonical form; ResolveQueue reads back the same.
func (q Queue) Layer() Layer { return encode(queueFields(), &q) }

// Layer writes all settings of the manager in their canonical form; ResolveManager reads back the same.
func (m Manager) Layer() Layer { return encode(managerFields(), &m) }

func encode[T any](fields []field[T], t *T) Layer {
	layer := make(Layer, len(fields))
	for _, f := range fields {
		layer[f.Name] = f.encode(t)
	}
	return layer
}

// resolve checks every value of every layer, also those that a higher layer hides: a wrong value that waits to come to light
// is found when it is written. A rule is tested only when all it looks at could be read.
func resolve[T any](fields []field[T], rules []rule[T], layers []Layer) (T, []Problem) {
	var value T
	var problems []Problem
	byName := make(map[string]field[T], len(fields))
	names := make([]string, 0, len(fields))
	bad := make(map[string]bool)
	read := func(f field[T], text string) {
		if err := f.decode(&value, text); err != nil {
			bad[f.Name] = true
			problems = append(problems, Problem{Name: f.Name, Value: text, Reason: err.Error(), Allowed: f.Allowed()})
		}
	}
	for _, f := range fields {
		byName[f.Name] = f
		names = append(names, f.Name)
		read(f, f.Default)
	}
	for _, layer := range layers {
		for _, name := range slices.Sorted(maps.Keys(layer)) {
			f, ok := byName[name]
			if !ok {
				problems = append(problems, Problem{Name: name, Reason: "is not a setting" + hint(name, names)})
				continue
			}
			read(f, layer[name])
		}
	}
	for _, r := range rules {
		if slices.ContainsFunc(r.names, func(name string) bool { return bad[name] }) {
			continue
		}
		if reason, allowed := r.broken(value); reason != "" {
			blamed := r.names[0]
			problems = append(problems, Problem{
				Name: blamed, Others: r.names[1:], Value: byName[blamed].encode(&value), Reason: reason, Allowed: allowed,
			})
		}
	}
	return value, problems
}
