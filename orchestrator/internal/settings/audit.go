package settings

import (
	"log/slog"
	"maps"
	"slices"
)

// logChanges writes one line for each value that differs, and for each queue that came or went.
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
}

func logDiff(log *slog.Logger, before, after Layer) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			log.Info("setting changed", "setting", name, "from", before[name], "to", after[name])
		}
	}
}
