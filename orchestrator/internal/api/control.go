package api

import (
	"context"
	"errors"
	"iter"

	"connectrpc.com/connect"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
)

// Control shows and changes the manager. It answers while the broker is away: what needs the broker says so within a second.
// Its errors are those of package client, those of package settings, or made with Invalid, NotFound, Refused and Busy.
type Control interface {
	StatusControl
	TaskControl
	QueueControl
	WorkerControl
	SettingsControl
	ScheduleControl
}

// StatusControl says how the manager is doing, and what happens in it.
type StatusControl interface {
	Status(ctx context.Context) (*apiv1.StatusResponse, error)
	Managers(ctx context.Context) (*apiv1.ManagersResponse, error)
	Examine(ctx context.Context) (*apiv1.ExamineResponse, error)
	// Watch gives what happens until ctx ends. Its first value, nil, says that nothing is missed from then on.
	Watch(ctx context.Context, r *apiv1.WatchRequest) iter.Seq2[*apiv1.WatchResponse, error]
}

// TaskControl shows and changes tasks in the broker.
type TaskControl interface {
	ListTasks(ctx context.Context, r *apiv1.ListTasksRequest) (*apiv1.ListTasksResponse, error)
	RetryTasks(ctx context.Context, r *apiv1.RetryTasksRequest) (*apiv1.RetryTasksResponse, error)
	DropTasks(ctx context.Context, r *apiv1.DropTasksRequest) (*apiv1.DropTasksResponse, error)
}

// QueueControl is about the queues of the manager.
type QueueControl interface {
	Explain(ctx context.Context, r *apiv1.ExplainRequest) (*apiv1.ExplainResponse, error)
	Locks(ctx context.Context, r *apiv1.LocksRequest) (*apiv1.LocksResponse, error)
	Pause(ctx context.Context, r *apiv1.PauseRequest) (*apiv1.PauseResponse, error)
	Resume(ctx context.Context, r *apiv1.ResumeRequest) (*apiv1.ResumeResponse, error)
}

// WorkerControl is about the worker processes of the manager.
type WorkerControl interface {
	Restart(ctx context.Context, r *apiv1.RestartRequest) (*apiv1.RestartResponse, error)
	Kill(ctx context.Context, r *apiv1.KillRequest) (*apiv1.KillResponse, error)
	Stacks(ctx context.Context, r *apiv1.StacksRequest) (*apiv1.StacksResponse, error)
	Logs(ctx context.Context, r *apiv1.LogsRequest) iter.Seq2[*apiv1.LogsResponse, error]
}

// SettingsControl shows and changes the settings. The who of a request is filled in: it names the caller for the log.
type SettingsControl interface {
	Settings(ctx context.Context, r *apiv1.SettingsRequest) (*apiv1.SettingsResponse, error)
	ChangeSettings(ctx context.Context, r *apiv1.ChangeSettingsRequest) (*apiv1.ChangeSettingsResponse, error)
	UndoSettings(ctx context.Context, r *apiv1.UndoSettingsRequest) (*apiv1.UndoSettingsResponse, error)
	SaveSettings(ctx context.Context, r *apiv1.SaveSettingsRequest) (*apiv1.SaveSettingsResponse, error)
	Reload(ctx context.Context, r *apiv1.ReloadRequest) (*apiv1.ReloadResponse, error)
}

// maxFollowers bounds the streams of the ControlService: those who watch, and those who follow a worker's output.
const maxFollowers = 64

// control serves the ControlService.
type control struct {
	control   Control
	waits     func(context.Context) (context.Context, func()) // a context that also ends when the manager stops
	followers chan struct{}                                   // has an element for each stream
}

var _ apiv1connect.ControlServiceHandler = (*control)(nil)

// answer gives the errors of a call the codes under which callers know them.
func answer[Res any](ctx context.Context, response *Res, err error) (*Res, error) {
	if err != nil {
		return nil, wire(ctx, err)
	}
	return response, nil
}

// Status says how the manager is doing.
func (c *control) Status(ctx context.Context, _ *apiv1.StatusRequest) (*apiv1.StatusResponse, error) {
	response, err := c.control.Status(ctx)
	return answer(ctx, response, err)
}

// Explain says why a queue has the workers that it has.
func (c *control) Explain(ctx context.Context, r *apiv1.ExplainRequest) (*apiv1.ExplainResponse, error) {
	response, err := c.control.Explain(ctx, r)
	return answer(ctx, response, err)
}

// Locks lists locks and who waits for one.
func (c *control) Locks(ctx context.Context, r *apiv1.LocksRequest) (*apiv1.LocksResponse, error) {
	response, err := c.control.Locks(ctx, r)
	return answer(ctx, response, err)
}

// ListTasks lists tasks of a queue in one state.
func (c *control) ListTasks(ctx context.Context, r *apiv1.ListTasksRequest) (*apiv1.ListTasksResponse, error) {
	response, err := c.control.ListTasks(ctx, r)
	return answer(ctx, response, err)
}

// RetryTasks puts dead letters and failed tasks back.
func (c *control) RetryTasks(ctx context.Context, r *apiv1.RetryTasksRequest) (*apiv1.RetryTasksResponse, error) {
	response, err := c.control.RetryTasks(ctx, r)
	return answer(ctx, response, err)
}

// DropTasks takes tasks out of their queue.
func (c *control) DropTasks(ctx context.Context, r *apiv1.DropTasksRequest) (*apiv1.DropTasksResponse, error) {
	response, err := c.control.DropTasks(ctx, r)
	return answer(ctx, response, err)
}

// Pause stops the taking of a queue's tasks.
func (c *control) Pause(ctx context.Context, r *apiv1.PauseRequest) (*apiv1.PauseResponse, error) {
	response, err := c.control.Pause(ctx, r)
	return answer(ctx, response, err)
}

// Resume takes them again.
func (c *control) Resume(ctx context.Context, r *apiv1.ResumeRequest) (*apiv1.ResumeResponse, error) {
	response, err := c.control.Resume(ctx, r)
	return answer(ctx, response, err)
}

// Restart replaces workers.
func (c *control) Restart(ctx context.Context, r *apiv1.RestartRequest) (*apiv1.RestartResponse, error) {
	response, err := c.control.Restart(ctx, r)
	return answer(ctx, response, err)
}

// Kill ends a worker now.
func (c *control) Kill(ctx context.Context, r *apiv1.KillRequest) (*apiv1.KillResponse, error) {
	response, err := c.control.Kill(ctx, r)
	return answer(ctx, response, err)
}

// Stacks returns the stacks of a worker.
func (c *control) Stacks(ctx context.Context, r *apiv1.StacksRequest) (*apiv1.StacksResponse, error) {
	response, err := c.control.Stacks(ctx, r)
	return answer(ctx, response, err)
}

// Settings lists settings.
func (c *control) Settings(ctx context.Context, r *apiv1.SettingsRequest) (*apiv1.SettingsResponse, error) {
	response, err := c.control.Settings(ctx, r)
	return answer(ctx, response, err)
}

// ChangeSettings makes all changes or none.
func (c *control) ChangeSettings(ctx context.Context, r *apiv1.ChangeSettingsRequest) (*apiv1.ChangeSettingsResponse, error) {
	r.Who = who(ctx, r.GetWho())
	response, err := c.control.ChangeSettings(ctx, r)
	return answer(ctx, response, err)
}

// UndoSettings takes the last change back.
func (c *control) UndoSettings(ctx context.Context, r *apiv1.UndoSettingsRequest) (*apiv1.UndoSettingsResponse, error) {
	r.Who = who(ctx, r.GetWho())
	response, err := c.control.UndoSettings(ctx, r)
	return answer(ctx, response, err)
}

// SaveSettings writes the live changes where they outlive a restart.
func (c *control) SaveSettings(ctx context.Context, r *apiv1.SaveSettingsRequest) (*apiv1.SaveSettingsResponse, error) {
	r.Who = who(ctx, r.GetWho())
	response, err := c.control.SaveSettings(ctx, r)
	return answer(ctx, response, err)
}

// Reload reads the configuration again.
func (c *control) Reload(ctx context.Context, r *apiv1.ReloadRequest) (*apiv1.ReloadResponse, error) {
	r.Who = who(ctx, r.GetWho())
	response, err := c.control.Reload(ctx, r)
	return answer(ctx, response, err)
}

// Logs sends what a worker wrote.
func (c *control) Logs(ctx context.Context, r *apiv1.LogsRequest, stream *connect.ServerStream[apiv1.LogsResponse]) error {
	return follow(ctx, c, stream, func(ctx context.Context) iter.Seq2[*apiv1.LogsResponse, error] { return c.control.Logs(ctx, r) })
}

// Watch sends what happens.
func (c *control) Watch(ctx context.Context, r *apiv1.WatchRequest, stream *connect.ServerStream[apiv1.WatchResponse]) error {
	return follow(ctx, c, stream, func(ctx context.Context) iter.Seq2[*apiv1.WatchResponse, error] { return c.control.Watch(ctx, r) })
}

// follow sends what comes until it ends, the caller goes or the manager stops. A nil sends the head of the answer alone, which
// tells the caller that it is being served.
func follow[M any](ctx context.Context, c *control, stream *connect.ServerStream[M], source func(context.Context) iter.Seq2[*M, error]) error {
	select {
	case c.followers <- struct{}{}:
		defer func() { <-c.followers }()
	default:
		return wire(ctx, Busy(errors.New("too many watch this manager already; end some of them first")))
	}
	p := paceOf(ctx)
	waiting, done := c.waits(ctx)
	defer done()
	for message, err := range source(waiting) {
		if err != nil {
			p.beforeSend()
			return wire(waiting, err)
		}
		if err := send(p, stream, message); err != nil {
			return err
		}
	}
	p.beforeSend()
	if errors.Is(context.Cause(waiting), errStopping) {
		return wire(waiting, errStopping)
	}
	return nil
}
