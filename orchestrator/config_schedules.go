package orchestrator

import (
	"go.yaml.in/yaml/v4"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/task"
)

// ScheduleConfig is one schedule of this manager.
type ScheduleConfig struct {
	// Queue is where its runs are submitted; it need not be one that this manager serves.
	Queue string
	// Settings are the schedule's live settings, as written; the payload as JSON.
	Settings settings.Layer
}

// schedule reads one schedule.
func (d *decoder) schedule(path string, n *yaml.Node) ScheduleConfig {
	s := ScheduleConfig{Settings: settings.Layer{}}
	known := d.layer(settings.ScopeSchedule, s.Settings)
	known["queue"] = d.into(&s.Queue, "the name of a queue")
	known["payload"] = func(path string, n *yaml.Node) { s.Settings["payload"] = string(d.options(path, n)) }
	d.section(path, n, known)
	return s
}

// schedule checks one schedule. Whether its payload fits is known when the queue's plugin has said what it accepts.
func (k *checker) schedule(name string, s ScheduleConfig) {
	path := join("schedules", name)
	k.name(path, name)
	at := join(path, "queue")
	if s.Queue == "" {
		k.add(at, "", "is missing", "the queue that takes its runs")
	} else if err := task.CheckName(s.Queue); err != nil {
		k.add(at, s.Queue, "is not the name of a queue", namesAllowed)
	}
	_, err := settings.ResolveSchedule(s.Settings)
	k.settings(path, err)
}
