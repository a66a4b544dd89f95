package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/schedule"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
)

const (
	// schedulesTimeout bounds all questions to Redis of one list.
	schedulesTimeout = time.Second
	// askingAtOnce bounds those that are asked at a time.
	askingAtOnce = 8
	// runsShown are the due times to come that are told of a schedule.
	runsShown = 5
)

// schedule returns a schedule of this manager's configuration. The error says that it has none of that name.
func (c *control) schedule(name string) (schedule.Spec, error) {
	specs := c.o.scheduleSpecs()
	names := make([]string, len(specs))
	for i, spec := range specs {
		if names[i] = spec.Name; spec.Name == name {
			return spec, nil
		}
	}
	hint := "; it has none"
	if len(names) > 0 {
		hint = "; `drover schedules` lists them"
	}
	if near := settings.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return schedule.Spec{}, api.NotFound(fmt.Errorf("no such schedule in this manager: %.80q%s", name, hint))
}

// Schedules lists schedules, with what is known of them in Redis, if it answers.
func (c *control) Schedules(ctx context.Context, r *apiv1.SchedulesRequest) (*apiv1.SchedulesResponse, error) {
	specs, shown := c.o.scheduleSpecs(), 1
	if name := r.GetName(); name != "" {
		spec, err := c.schedule(name)
		if err != nil {
			return nil, err
		}
		specs, shown = []schedule.Spec{spec}, runsShown
	}
	slices.SortFunc(specs, func(a, b schedule.Spec) int { return cmp.Compare(a.Name, b.Name) })
	ctx, cancel := context.WithTimeout(ctx, schedulesTimeout)
	defer cancel()
	answer := &apiv1.SchedulesResponse{Schedules: make([]*apiv1.Schedule, len(specs))}
	problems := make([]error, len(specs))
	var asking sync.WaitGroup
	free := make(chan struct{}, askingAtOnce)
	for i, spec := range specs {
		free <- struct{}{}
		asking.Go(func() {
			defer func() { <-free }()
			answer.Schedules[i], problems[i] = c.described(ctx, spec, shown)
		})
	}
	asking.Wait()
	for _, err := range problems {
		if err != nil {
			answer.BrokerError = err.Error()
			break
		}
	}
	return answer, nil
}

// described says what is known of one schedule; what is not known because Redis does not answer is left out.
func (c *control) described(ctx context.Context, spec schedule.Spec, shown int) (*apiv1.Schedule, error) {
	s := &apiv1.Schedule{
		Name: spec.Name, Queue: spec.Queue, Cron: spec.Cron, EveryMs: spec.Every.Milliseconds(), TimeZone: spec.TimeZone, JitterMs: spec.Jitter.Milliseconds(),
		Overlap: string(spec.Overlap), CatchUp: string(spec.CatchUp), Payload: spec.Payload, State: "unknown",
	}
	problem := c.o.scheduleProblem(spec)
	if problem != nil {
		s.Problem = problem.Error()
	}
	known, err := c.o.schedules.Look(ctx, spec)
	if err != nil {
		return s, err
	}
	switch {
	case spec.Enabled == settings.SwitchOff:
		s.State = "off"
	case !known.Paused.IsZero():
		s.State = "paused"
	case problem != nil:
		s.State = "broken"
	case !known.Queued.IsZero():
		s.State = "waiting"
	default:
		s.State = "on"
	}
	for _, run := range schedule.Next(spec, known, shown) {
		s.Next = append(s.Next, &apiv1.ScheduledRun{DueMs: run.Due.UnixMilli(), AtMs: run.At.UnixMilli()})
	}
	s.QueuedDueMs, s.LastDueMs, s.LastAtMs, s.PausedMs = unixMillis(known.Queued), unixMillis(known.LastDue), unixMillis(known.LastAt), unixMillis(known.Paused)
	s.LastManager, s.PausedBy, s.Fired, s.Skipped, s.Missed = known.LastBy, known.PausedBy, known.Fired, known.Skipped, known.Missed
	if known.Last.IsZero() {
		return s, nil
	}
	s.LastTaskId = known.Last.String()
	last, err := view{Client: c.o.tasks, o: c.o}.Get(ctx, known.Last)
	switch {
	case errors.Is(err, client.ErrUnknownTask):
		return s, nil
	case err != nil:
		return s, err
	}
	s.LastState = taskv1.State(last.State)
	s.LastFault = last.Fault.Proto()
	return s, nil
}

func unixMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// PauseSchedule keeps all managers from firing a schedule: that is kept in Redis.
func (c *control) PauseSchedule(ctx context.Context, r *apiv1.PauseScheduleRequest) (*apiv1.PauseScheduleResponse, error) {
	spec, err := c.schedule(r.GetName())
	if err != nil {
		return nil, err
	}
	changed, err := c.o.schedules.Pause(ctx, spec, r.GetWho())
	if err != nil {
		return nil, fmt.Errorf("pause schedule %s: %w", spec.Name, err)
	}
	if changed {
		c.o.log.Info("schedule paused for all managers", "schedule", spec.Name, "who", r.GetWho())
		c.o.noteQueue(settings.OfSchedule(spec.Name), "paused", "for all managers")
	}
	return &apiv1.PauseScheduleResponse{Changed: changed}, nil
}

// ResumeSchedule undoes that. What passed meanwhile is not caught up.
func (c *control) ResumeSchedule(ctx context.Context, r *apiv1.ResumeScheduleRequest) (*apiv1.ResumeScheduleResponse, error) {
	spec, err := c.schedule(r.GetName())
	if err != nil {
		return nil, err
	}
	changed, err := c.o.schedules.Resume(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("resume schedule %s: %w", spec.Name, err)
	}
	if changed {
		c.o.log.Info("schedule resumed", "schedule", spec.Name, "who", r.GetWho())
		c.o.noteQueue(settings.OfSchedule(spec.Name), "resumed", "")
	}
	return &apiv1.ResumeScheduleResponse{Changed: changed}, nil
}

// RunSchedule submits a run now.
func (c *control) RunSchedule(ctx context.Context, r *apiv1.RunScheduleRequest) (*apiv1.RunScheduleResponse, error) {
	spec, err := c.schedule(r.GetName())
	if err != nil {
		return nil, err
	}
	id, err := c.o.schedules.Fire(ctx, spec)
	if err != nil {
		return nil, err
	}
	c.o.log.Info("schedule run by hand", "schedule", spec.Name, "task", id, "who", r.GetWho())
	c.o.noteQueue(spec.Queue, "schedule-fired", spec.Name+", by hand: "+id.String())
	return &apiv1.RunScheduleResponse{TaskId: id.String()}, nil
}
