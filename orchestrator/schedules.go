package orchestrator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/schedule"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// buildSchedules makes what fires the schedules. A schedule is the settings of its name, for the queue that the configuration says.
func (o *Orchestrator) buildSchedules() {
	o.schedules = schedule.New(schedule.Deps{
		Manager: o.config.Manager.Name, Redis: o.redis, Tasks: o.tasks, Specs: o.scheduleSpecs, Told: o.scheduleDecided, Log: o.log,
	})
	for _, spec := range o.scheduleSpecs() {
		if err := o.checkRun(spec); err != nil {
			o.log.Error("the payload of a schedule does not fit; it is not fired until that is mended", "schedule", spec.Name, "error", err)
		}
	}
}

// scheduleSpecs are the schedules of now.
func (o *Orchestrator) scheduleSpecs() []schedule.Spec {
	queues, now := o.present.Load().schedules, o.store.Load().Schedules
	specs := make([]schedule.Spec, 0, len(now))
	for name, s := range now {
		if queue, ok := queues[name]; ok {
			specs = append(specs, schedule.Spec{Name: name, Queue: queue, Schedule: s})
		}
	}
	return specs
}

// scheduleQueues are the queues of a configuration's schedules, by the schedule's name.
func scheduleQueues(config *Config) map[string]string {
	queues := make(map[string]string, len(config.Schedules))
	for name, s := range config.Schedules {
		queues[name] = s.Queue
	}
	return queues
}

// checkRun says what is wrong with the payload of a schedule; nil when that is not known, because the queue is another manager's or its
// plugin has never started.
func (o *Orchestrator) checkRun(spec schedule.Spec) error {
	s := o.present.Load().queues[spec.Queue]
	if s == nil {
		return nil
	}
	if err := o.catalog.Check(s.plugin, []byte(spec.Payload)); err != nil {
		return fmt.Errorf("%s.payload does not fit queue %s: %w", settings.OfSchedule(spec.Name), spec.Queue, err)
	}
	return nil
}

// scheduleProblem says why a schedule cannot be fired; nil when nothing is known to be wrong.
func (o *Orchestrator) scheduleProblem(spec schedule.Spec) error {
	problem := o.schedules.Problem(spec.Name)
	if problem == nil || errors.Is(problem, client.ErrUnavailable) {
		problem = cmp.Or(o.checkRun(spec), problem)
	}
	return problem
}

// brokenSchedules says, for who asks how the manager is doing, which schedules are not fired until somebody mends them. A broker that does not
// answer is told of elsewhere.
func (o *Orchestrator) brokenSchedules() []string {
	var warnings []string
	for _, spec := range o.scheduleSpecs() {
		if spec.Enabled == settings.SwitchOff {
			continue
		}
		if err := o.scheduleProblem(spec); err != nil && !errors.Is(err, client.ErrUnavailable) {
			warnings = append(warnings, fmt.Sprintf("schedule %s is broken and submits nothing: %v", spec.Name, err))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// checkRuns says which of the schedules that differ between two snapshots have a payload that does not fit.
func (o *Orchestrator) checkRuns(before, after *settings.Snapshot) error {
	var problems []error
	queues := o.present.Load().schedules
	for _, name := range sortedKeys(after.Schedules) {
		if was, ok := before.Schedules[name]; !ok || was.Payload != after.Schedules[name].Payload {
			problems = append(problems, o.checkRun(schedule.Spec{Name: name, Queue: queues[name], Schedule: after.Schedules[name]}))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return api.Invalid(err)
	}
	return nil
}

// scheduleDecided tells log, metrics and those who watch of a due time that this manager has decided.
func (o *Orchestrator) scheduleDecided(d schedule.Decided) {
	o.metrics.ScheduleDecided(d.Spec.Name, d.Spec.Queue, string(d.Verdict), d.Missed, d.Late)
	due := d.Due.UTC().Format("2006-01-02 15:04:05 MST")
	log := o.log.With("schedule", d.Spec.Name, "queue", d.Spec.Queue, "due", due)
	if d.Missed > 0 {
		log.Warn("due times of a schedule passed while no manager was there", "missed", d.Missed, "catch_up", d.Spec.CatchUp)
	}
	log.Debug("schedule", "verdict", d.Verdict, "task", d.ID)
	text := d.Spec.Name + ", due " + due
	if !d.ID.IsZero() {
		text += ": " + d.ID.String()
	}
	o.noteQueue(d.Spec.Queue, "schedule-"+string(d.Verdict), text)
}

// checkSchedules says which schedules of the new lineup have a payload that does not fit, as far as the plugins have said what they
// accept.
func (t *transit) checkSchedules() error {
	var problems []error
	for _, name := range sortedKeys(t.config.Schedules) {
		s := t.config.Schedules[name]
		queue, served := t.config.Queues[s.Queue]
		if !served {
			continue
		}
		if err := t.check(queue.Plugin, s.Settings["payload"]); err != nil {
			problems = append(problems, fmt.Errorf("schedules.%s.payload does not fit queue %s: %w", name, s.Queue, err))
		}
	}
	return errors.Join(problems...)
}

// scheduleEffects says which schedules come, go and change their queue.
func (t *transit) scheduleEffects() []*apiv1.SettingEffect {
	var effects []*apiv1.SettingEffect
	after := scheduleQueues(t.config)
	add := func(name, effect string) {
		e := &apiv1.SettingEffect{Queue: settings.OfSchedule(name), Name: "queue", Before: t.before.schedules[name], After: after[name], Effect: effect}
		effects = append(effects, e)
		t.o.log.Info("schedule changed by a reload", "schedule", name, "queue_before", e.GetBefore(), "queue", e.GetAfter())
	}
	for _, name := range sortedKeys(after) {
		switch was, had := t.before.schedules[name]; {
		case !had:
			add(name, "it is fired from now on")
		case was != after[name]:
			add(name, "it begins anew in that queue; runs that were submitted stay where they are")
		}
	}
	for _, name := range sortedKeys(t.before.schedules) {
		if _, stays := after[name]; !stays {
			add(name, "this manager fires it no more; runs that were submitted stay")
		}
	}
	return effects
}
