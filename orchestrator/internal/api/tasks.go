package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

// maxDelay bounds how far in the future a task may be put.
const maxDelay = 10 * 365 * 24 * time.Hour

// tasks serves the TaskService.
type tasks struct {
	client client.Client
	waits  func(context.Context) (context.Context, func()) // a context that also ends when the manager stops
	beat   time.Duration                                   // see heartbeat
}

var _ apiv1connect.TaskServiceHandler = (*tasks)(nil)

// Submit puts one task into its queue.
func (s *tasks) Submit(ctx context.Context, r *apiv1.SubmitRequest) (*apiv1.SubmitResponse, error) {
	options, err := optionsOf(r)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	submitted, err := s.client.Submit(ctx, r.GetQueue(), json.RawMessage(r.GetPayload()), options...)
	if err != nil {
		return nil, wire(ctx, err)
	}
	return &apiv1.SubmitResponse{Id: submitted.ID.String(), Joined: submitted.Joined, State: taskv1.State(submitted.State)}, nil
}

// Get says what is known of a task.
func (s *tasks) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.GetResponse, error) {
	id, err := parse(r.GetId())
	if err != nil {
		return nil, err
	}
	t, err := s.client.Get(ctx, id)
	if err != nil {
		return nil, wire(ctx, err)
	}
	if !r.GetWithPayload() {
		t.Payload = nil
	}
	return &apiv1.GetResponse{Task: t.Proto()}, nil
}

// Wait answers when the task has ended, or with what is known of it when the time is over.
func (s *tasks) Wait(ctx context.Context, r *apiv1.WaitRequest) (*apiv1.WaitResponse, error) {
	id, err := parse(r.GetId())
	if err != nil {
		return nil, err
	}
	if r.GetTimeoutMs() < 0 {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("timeout_ms: %d is negative; 0 waits for ever", r.GetTimeoutMs()))
	}
	waiting, done := s.waits(ctx)
	defer done()
	if ms := min(r.GetTimeoutMs(), maxDelay.Milliseconds()); ms > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(waiting, time.Duration(ms)*time.Millisecond)
		defer cancel()
	}
	ended, err := client.Wait(waiting, s.client, id)
	switch {
	case err == nil:
		paceOf(ctx).beforeSend()
		return &apiv1.WaitResponse{Task: ended.Proto(), Ended: true}, nil
	case r.GetTimeoutMs() == 0 || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return nil, wire(waiting, err)
	}
	now, err := s.client.Get(ctx, id)
	if err != nil {
		return nil, wire(ctx, err)
	}
	now.Payload = nil
	paceOf(ctx).beforeSend()
	return &apiv1.WaitResponse{Task: now.Proto(), Ended: now.State.Ended()}, nil
}

// Subscribe sends the end of each task as it comes.
func (s *tasks) Subscribe(ctx context.Context, r *apiv1.SubscribeRequest, stream *connect.ServerStream[apiv1.SubscribeResponse]) error {
	if len(r.GetIds()) > maxIDs {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("ids: %d tasks are more than one subscription takes; ask for at most %d at once", len(r.GetIds()), maxIDs))
	}
	ids := make([]task.ID, len(r.GetIds()))
	for i, text := range r.GetIds() {
		id, err := parse(text)
		if err != nil {
			return err
		}
		ids[i] = id
	}
	if err := callOf(ctx).follow(len(ids)); err != nil {
		return err
	}
	var options []client.FollowOption
	if r.GetProgress() {
		options = append(options, client.WithEvents())
	}
	p := paceOf(ctx)
	waiting, done := s.waits(ctx)
	defer done()
	if err := send(p, stream, nil); err != nil { // the head alone: the caller knows that it is being served
		return err
	}
	for update, err := range s.client.Subscribe(waiting, ids, options...) {
		if err != nil {
			p.beforeSend()
			return wire(waiting, err)
		}
		if err := send(p, stream, message(update)); err != nil {
			return err
		}
	}
	p.beforeSend()
	return nil
}

// Cancel ends a task that has not ended.
func (s *tasks) Cancel(ctx context.Context, r *apiv1.CancelRequest) (*apiv1.CancelResponse, error) {
	id, err := parse(r.GetId())
	if err != nil {
		return nil, err
	}
	state, err := s.client.Cancel(ctx, id)
	if err != nil {
		return nil, wire(ctx, err)
	}
	return &apiv1.CancelResponse{State: taskv1.State(state)}, nil
}
