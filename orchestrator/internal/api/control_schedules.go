package api

import (
	"context"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// ScheduleControl is about the schedules of the manager's configuration. The who of a request is filled in.
type ScheduleControl interface {
	Schedules(ctx context.Context, r *apiv1.SchedulesRequest) (*apiv1.SchedulesResponse, error)
	PauseSchedule(ctx context.Context, r *apiv1.PauseScheduleRequest) (*apiv1.PauseScheduleResponse, error)
	ResumeSchedule(ctx context.Context, r *apiv1.ResumeScheduleRequest) (*apiv1.ResumeScheduleResponse, error)
	RunSchedule(ctx context.Context, r *apiv1.RunScheduleRequest) (*apiv1.RunScheduleResponse, error)
}

// Schedules lists schedules.
func (c *control) Schedules(ctx context.Context, r *apiv1.SchedulesRequest) (*apiv1.SchedulesResponse, error) {
	response, err := c.control.Schedules(ctx, r)
	return answer(ctx, response, err)
}

// PauseSchedule keeps a schedule from being fired.
func (c *control) PauseSchedule(ctx context.Context, r *apiv1.PauseScheduleRequest) (*apiv1.PauseScheduleResponse, error) {
	r.Who = who(ctx, r.GetWho())
	response, err := c.control.PauseSchedule(ctx, r)
	return answer(ctx, response, err)
}

// ResumeSchedule lets it be fired again.
func (c *control) ResumeSchedule(ctx context.Context, r *apiv1.ResumeScheduleRequest) (*apiv1.ResumeScheduleResponse, error) {
	r.Who = who(ctx, r.GetWho())
	response, err := c.control.ResumeSchedule(ctx, r)
	return answer(ctx, response, err)
}

// RunSchedule submits a run now.
func (c *control) RunSchedule(ctx context.Context, r *apiv1.RunScheduleRequest) (*apiv1.RunScheduleResponse, error) {
	r.Who = who(ctx, r.GetWho())
	response, err := c.control.RunSchedule(ctx, r)
	return answer(ctx, response, err)
}
