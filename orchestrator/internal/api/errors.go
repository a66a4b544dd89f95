package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

// parse reads an ID.
func parse(text string) (task.ID, error) {
	id, err := task.ParseID(text)
	if err != nil {
		return task.ID{}, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return id, nil
}

// wire gives an error of the client the code under which callers know it. ctx is the one of the call.
func wire(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStopping) {
		return connect.NewError(connect.CodeAborted, errStopping)
	}
	return connect.NewError(codeOf(err), err)
}

func codeOf(err error) connect.Code {
	switch {
	case errors.Is(err, client.ErrUnknownQueue), errors.Is(err, client.ErrUnknownTask):
		return connect.CodeNotFound
	case errors.Is(err, client.ErrInvalidPayload):
		return connect.CodeInvalidArgument
	case errors.Is(err, client.ErrForbidden):
		return connect.CodePermissionDenied
	case errors.Is(err, client.ErrUnavailable), errors.Is(err, client.ErrClosed):
		return connect.CodeUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return connect.CodeDeadlineExceeded
	case errors.Is(err, context.Canceled):
		return connect.CodeCanceled
	default:
		return connect.CodeInternal
	}
}

// message is the wire form of an update.
func message(u client.Update) *apiv1.SubscribeResponse {
	switch {
	case u.Ended != nil:
		return &apiv1.SubscribeResponse{Update: &apiv1.SubscribeResponse_Ended{Ended: u.Ended.Proto()}}
	case u.Event != nil:
		return &apiv1.SubscribeResponse{Update: &apiv1.SubscribeResponse_Event{Event: u.Event.Proto()}}
	default:
		return &apiv1.SubscribeResponse{Update: &apiv1.SubscribeResponse_UnknownId{UnknownId: u.ID.String()}}
	}
}
