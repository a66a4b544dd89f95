package settings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// What follows from a change is said in words, from the workers that there are.
func TestEffects(t *testing.T) {
	t.Parallel()
	workers := []settings.WorkerFacts{
		{ID: 3, RSS: 100 * settings.MiB, Slots: 4, Running: 2, Tasks: 50, Age: time.Hour},
		{ID: 7, RSS: 300 * settings.MiB, Slots: 4, Tasks: 500, Age: time.Minute},
	}
	for _, c := range []struct{ queue, name, from, to, want string }{
		{"q", "max_workers", "4", "1", "1 worker drains"},
		{"q", "max_workers", "4", "2", "2 workers run now, and no more"},
		{"q", "max_workers", "4", "8", "2 workers run now; up to 6 more start when there is work for them"},
		{"q", "min_workers", "0", "4", "2 workers start now"},
		{"q", "min_workers", "2", "0", "idle workers above it end after 1m"},
		{"q", "memory_max", "1GiB", "256MiB", "worker 7 (300 MiB) is killed now"},
		{"q", "memory_max", "1GiB", "64MiB", "workers 3 (100 MiB), 7 (300 MiB) are killed now"},
		{"q", "memory_max", "1GiB", "off", ""},
		{"q", "memory_soft", "off", "200MiB", "worker 7 (300 MiB) is replaced after its tasks"},
		{"q", "slots", "4", "8", "new workers have it; 2 workers keep what they have: restart q to apply it at once"},
		{"q", "buffer", "16", "3", "5 tasks wait already in the manager; no more are taken until fewer are"},
		{"q", "buffer", "16", "8", ""},
		{"q", "worker_lifetime", "off", "30m", "worker 3 (100 MiB) is replaced after its tasks"},
		{"q", "worker_max_tasks", "off", "100", "worker 7 (300 MiB) is replaced after its next task"},
		{"q", "worker_idle", "1m", "10s", "1 idle worker ends when it has had nothing to do for 10s"},
		{"q", "task_timeout", "5m", "1m", "2 tasks that run keep the limit with which they began"},
		{"q", "priority", "user", "system", "gives way"},
		{"q", "rate", "off", "1/s", ""},
		{settings.OfSchedule("s"), "every", "1h", "10m", "what was missed before is not caught up"},
		{settings.OfSchedule("s"), "enabled", "true", "false", "this manager runs it no more"},
		{settings.OfSchedule("s"), "jitter", "off", "1m", ""},
		{"", "max_processes", "off", "1", "1 worker runs more than that"},
		{"", "max_memory", "off", "128MiB", "the workers have 400 MiB now, more than that"},
	} {
		before := snapshot(t, c.queue, c.name, c.from)
		after := snapshot(t, c.queue, c.name, c.to)
		got := settings.Effects(before, after, map[string]settings.Facts{"q": {Workers: workers, Held: 5}})
		if len(got) != 1 || got[0].Queue != c.queue || got[0].Name != c.name || got[0].Before != c.from || got[0].After != c.to {
			t.Errorf("%+v: %+v", c, got)
			continue
		}
		if c.want == "" && got[0].Effect != "" || !strings.Contains(got[0].Effect, c.want) {
			t.Errorf("%s %s -> %s: %q, want %q", c.name, c.from, c.to, got[0].Effect, c.want)
		}
	}
}

// Every setting can be compared, with any number of workers, and what stays the same is not told.
func TestEffectsOfAll(t *testing.T) {
	t.Parallel()
	for _, row := range settings.Describe() {
		queue := "q"
		if row.Scope == settings.ScopeManager {
			queue = ""
		}
		if row.Scope == settings.ScopeSchedule {
			queue = settings.OfSchedule("s")
		}
		values := append([]string{row.Default, row.Min, row.Max}, row.Choices...)
		for _, from := range values {
			for _, to := range values {
				if from == "" || to == "" || row.Name == "min_workers" || strings.HasPrefix(row.Name, "retry_backoff") || row.Name == "max_workers" || row.Name == "buffer" || row.Name == "cron" || row.Name == "every" {
					continue // alone they do not hold
				}
				got := settings.Effects(snapshot(t, queue, row.Name, from), snapshot(t, queue, row.Name, to), nil)
				if (len(got) == 0) != (from == to) {
					t.Errorf("%s %s -> %s: %+v", row.Name, from, to, got)
				}
			}
		}
	}
}

func snapshot(t *testing.T, queue, name, value string) *settings.Snapshot {
	t.Helper()
	var manager, q settings.Layer
	x := settings.Layer{"every": "366d"}
	switch queue {
	case "":
		manager = settings.Layer{name: value}
	case "q":
		q = settings.Layer{name: value}
	default:
		x[name] = value
	}
	m, err := settings.ResolveManager(manager)
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := settings.ResolveQueue(q)
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := settings.ResolveSchedule(x)
	if err != nil {
		t.Fatal(err)
	}
	return &settings.Snapshot{Manager: m, Queues: map[string]settings.Queue{"q": resolved}, Schedules: map[string]settings.Schedule{"s": schedule}}
}
