package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// Settings lists settings with their values and where these come from.
func (c *control) Settings(_ context.Context, r *apiv1.SettingsRequest) (*apiv1.SettingsResponse, error) {
	wanted := r.GetQueue()
	if err := c.addressed(wanted); err != nil {
		return nil, err
	}
	list := c.o.store.List()
	answer := &apiv1.SettingsResponse{Version: uint64(list.Version), UndoSteps: int32(list.UndoSteps)} //nolint:gosec // few
	for _, v := range list.Values {
		if wanted == "" || wanted == v.Queue || wanted == managerScope && v.Queue == "" {
			answer.Settings = append(answer.Settings, &apiv1.Setting{
				Queue: v.Queue, Name: v.Name, Value: v.Value, Source: v.From, FileValue: v.Below, SavedValue: v.Saved,
				Allowed: v.Allowed(), Meaning: v.Meaning, Takes: takes(v.Takes), Unit: unit(v.Kind),
			})
		}
	}
	return answer, nil
}

// addressed returns an error unless there are settings at an address: a queue's name, a schedule's, the manager's, or all.
func (c *control) addressed(at string) error {
	name, is := settings.ScheduleOf(at)
	switch {
	case at == "" || at == managerScope:
		return nil
	case is:
		_, err := c.schedule(name)
		return err
	default:
		return c.own(at)
	}
}

// takes is the word of the API for when a change takes hold.
func takes(e settings.Effect) string {
	switch e {
	case settings.EffectNextTask:
		return "next-task"
	case settings.EffectNextWorker:
		return "next-worker"
	default:
		return "now"
	}
}

// unit says in which unit a setting counts; empty for one that has none.
func unit(k settings.Kind) string {
	switch k {
	case settings.KindDuration:
		return "time"
	case settings.KindBytes:
		return "bytes"
	case settings.KindRate:
		return "tasks per time"
	default:
		return ""
	}
}

// maxChanges bounds the changes of one request.
const maxChanges = 1000

// ChangeSettings makes all changes or none, and says what follows.
func (c *control) ChangeSettings(_ context.Context, r *apiv1.ChangeSettingsRequest) (*apiv1.ChangeSettingsResponse, error) {
	switch n := len(r.GetChanges()); {
	case n == 0:
		return nil, api.Invalid(errors.New("changes: there is none"))
	case n > maxChanges:
		return nil, api.Invalid(fmt.Errorf("changes: %d are more than the %d that may be made at once", n, maxChanges))
	}
	changes := make([]settings.Change, len(r.GetChanges()))
	for i, ch := range r.GetChanges() {
		queue := ch.GetQueue()
		if queue == managerScope { // no queue may have that name
			queue = ""
		}
		changes[i] = settings.Change{Queue: queue, Name: ch.GetName(), Value: ch.GetValue(), Unset: ch.GetUnset()}
	}
	facts := c.o.facts() // before the change: what it does to workers begins at once
	edit := settings.Edit{Changes: changes, Who: r.GetWho(), DryRun: true, IfVersion: settings.Version(r.GetIfVersion())}
	made, err := c.o.store.Edit(edit)
	if err == nil {
		err = c.o.checkRuns(made.Before, made.After)
	}
	if edit.DryRun = r.GetDryRun(); err == nil && !edit.DryRun {
		made, err = c.o.store.Edit(edit)
	}
	if err != nil {
		return nil, err
	}
	version := made.After.Version
	if r.GetDryRun() {
		version = made.Before.Version
	}
	return &apiv1.ChangeSettingsResponse{Version: uint64(version), Effects: effects(made, facts)}, nil
}

// UndoSettings takes the last change back.
func (c *control) UndoSettings(_ context.Context, r *apiv1.UndoSettingsRequest) (*apiv1.UndoSettingsResponse, error) {
	facts := c.o.facts()
	made, err := c.o.store.Undo(r.GetWho())
	if err != nil {
		return nil, err
	}
	return &apiv1.UndoSettingsResponse{Version: uint64(made.After.Version), Effects: effects(made, facts)}, nil
}

// SaveSettings writes the live changes to the manager's overlay file.
func (c *control) SaveSettings(_ context.Context, r *apiv1.SaveSettingsRequest) (*apiv1.SaveSettingsResponse, error) {
	n, err := c.saved.write(c.o.store, r.GetWho(), time.Now())
	if err != nil {
		return nil, api.Refused(err)
	}
	c.o.log.Info("settings saved", "who", r.GetWho(), "settings", n, "file", c.saved.path)
	return &apiv1.SaveSettingsResponse{Path: absolute(c.saved.path), Settings: int32(n)}, nil //nolint:gosec // few
}

// facts is what the effects of a change depend on.
func (o *Orchestrator) facts() map[string]settings.Facts {
	queues := o.present.Load().queues
	facts := make(map[string]settings.Facts, len(queues))
	for name, s := range queues {
		stats := s.pool.Stats()
		f := settings.Facts{Held: stats.Held}
		for _, w := range stats.Workers {
			if !w.Leaving {
				f.Workers = append(f.Workers, settings.WorkerFacts{
					ID: w.ID, RSS: settings.Bytes(w.RSS), Running: w.Running, Slots: w.Slots, Tasks: w.Tasks, Age: time.Since(w.Since),
				})
			}
		}
		facts[name] = f
	}
	return facts
}

// effects says what changes and what follows from it.
func effects(made settings.Made, facts map[string]settings.Facts) []*apiv1.SettingEffect {
	var all []*apiv1.SettingEffect
	for _, d := range settings.Effects(made.Before, made.After, facts) {
		all = append(all, &apiv1.SettingEffect{Queue: d.Queue, Name: d.Name, Before: d.Before, After: d.After, Effect: d.Effect})
	}
	return all
}
