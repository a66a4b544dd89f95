package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// Look says what is known of a schedule. It changes nothing that matters.
func (s *Schedules) Look(ctx context.Context, spec Spec) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return read(ctx, s.Redis, spec, "", "")
}

// Pause keeps all managers from firing a schedule. It reports whether that changed anything.
func (s *Schedules) Pause(ctx context.Context, spec Spec, who string) (bool, error) {
	if who == "" {
		who = "somebody"
	}
	return s.setPaused(ctx, spec, who)
}

// Resume lets it be fired again, from the next due time on. It reports whether that changed anything.
func (s *Schedules) Resume(ctx context.Context, spec Spec) (bool, error) {
	return s.setPaused(ctx, spec, "")
}

func (s *Schedules) setPaused(ctx context.Context, spec Spec, who string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	changed, err := broker.Script(s.Redis, pauseSource).Run(ctx, s.Redis, []string{task.KeysOf(spec.Queue).Schedule(spec.Name)}, who).Bool()
	if err != nil {
		return false, fmt.Errorf("whether schedule %s is paused is kept in Redis, for all managers, and Redis is %w: %w", spec.Name, client.ErrUnavailable, err)
	}
	return changed, nil
}

// Fire submits a run now, also of a schedule that is paused or off.
func (s *Schedules) Fire(ctx context.Context, spec Spec) (task.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.Tasks.RunSchedule(ctx, spec.Queue, spec.Name, json.RawMessage(spec.Payload), s.Manager)
}

// NextRun is one that is to come.
type NextRun struct {
	Due, At time.Time
}

// Next returns the next n due times of a schedule; none of one that is paused or off.
func Next(spec Spec, state State, n int) []NextRun {
	t, err := spec.Timetable(spec.Name)
	if err != nil || spec.Enabled == settings.SwitchOff || !state.Paused.IsZero() {
		return nil
	}
	from := state.Now
	if state.Decided.After(from) { // the clock of Redis was put back
		from = state.Decided
	}
	if due := t.Next(state.Decided); t.FireAt(due).After(state.Now) { // it is due, but its jitter is not over
		from = state.Decided
	}
	var runs []NextRun
	for range n {
		due := t.Next(from)
		if due.IsZero() {
			break
		}
		runs = append(runs, NextRun{Due: due, At: t.FireAt(due)})
		from = due
	}
	return runs
}
