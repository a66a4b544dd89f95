package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
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

// coded is an error of a Control with its code.
type coded struct {
	code connect.Code
	err  error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// Invalid says that a request cannot be meant: it is wrong by itself.
func Invalid(err error) error { return &coded{connect.CodeInvalidArgument, err} }

// NotFound says that there is no such thing as the request names.
func NotFound(err error) error { return &coded{connect.CodeNotFound, err} }

// Refused says that the request is sound, but not as things stand.
func Refused(err error) error { return &coded{connect.CodeFailedPrecondition, err} }

// Busy says that the manager does too much of that already.
func Busy(err error) error { return &coded{connect.CodeResourceExhausted, err} }

func codeOf(err error) connect.Code {
	var own *coded
	var invalid *settings.InvalidError
	var stale *settings.VersionError
	switch {
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &invalid):
		return connect.CodeInvalidArgument
	case errors.As(err, &stale), errors.Is(err, settings.ErrNothingToUndo):
		return connect.CodeFailedPrecondition
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
