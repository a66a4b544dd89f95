package settings

import (
	"log/slog"
	"maps"
	"slices"
)

// logChanges writes one line for each value that differs, and for each queue and schedule that came or went.
func logChanges(log *slog.Logger, old, now *Snapshot) {
	logDiff(log, old.Manager.Layer(), now.Manager.Layer())
	for _, name := range slices.Sorted(maps.Keys(now.Queues)) {
		q, ok := old.Queues[name]
		if !ok {
			log.Info("queue added", "queue", name)
			continue
		}
		if q != now.Queues[name] {
			logDiff(log.With("queue", name), q.Layer(), now.Queues[name].Layer())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old.Queues)) {
		if _, ok := now.Queues[name]; !ok {
			log.Info("queue removed", "queue", name)
		}
	}
	logSchedules(log, old, now)
}

func logSchedules(log *slog.Logger, old, now *Snapshot) {
	for _, name := range slices.Sorted(maps.Keys(now.Schedules)) {
		s, ok := old.Schedules[name]
		if !ok {
			log.Info("schedule added", "schedule", name)
			continue
		}
		if s != now.Schedules[name] {
			logDiff(log.With("schedule", name), s.Layer(), now.Schedules[name].Layer())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old.Schedules)) {
		if _, ok := now.Schedules[name]; !ok {
			log.Info("schedule removed", "schedule", name)
		}
	}
}

func logDiff(log *slog.Logger, before, after Layer) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			log.Info("setting changed", "setting", name, "from", before[name], "to", after[name])
		}
	}
}
