package client

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
)

// answer is an error that the manager sent: its words, and which of the errors of this package it is.
type answer struct {
	message string
	kind    error
}

func (e *answer) Error() string { return e.message }
func (e *answer) Unwrap() error { return e.kind }

// Explain turns an error of a call to a manager into one that says what was being done and that errors.Is finds among the
// errors of this package: ErrNoManager, ErrUnavailable, ErrForbidden, ErrRefused, ErrBusy, ErrUnknownTask, or that of ctx. It returns nil for nil.
func Explain(ctx context.Context, what string, err error) error {
	return explain(ctx, what, err, ErrUnknownTask, nil)
}

// isBusy reports whether a manager says that its caller is over a limit: then it says when to try again.
func isBusy(sent *connect.Error) bool { return sent.Meta().Get("Retry-After") != "" }

// explain is Explain with the meaning, in this call, of what is not found and of what is wrong with the request.
func explain(ctx context.Context, what string, err, notFound, wrong error) error {
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%s: %w", what, cause)
	}
	var refused *dialError
	if errors.As(err, &refused) {
		return fmt.Errorf("%s: %w: %w; start one, or name the address of one that runs", what, ErrNoManager, refused)
	}
	var sent *connect.Error
	if !errors.As(err, &sent) || !connect.IsWireError(err) {
		return fmt.Errorf("%s: the manager is %w: %w", what, ErrUnavailable, err)
	}
	switch sent.Code() {
	case connect.CodeNotFound:
		return &answer{message: sent.Message(), kind: notFound}
	case connect.CodeResourceExhausted:
		if isBusy(sent) {
			return &answer{message: sent.Message(), kind: ErrBusy}
		}
		return &answer{message: sent.Message(), kind: wrong} // the request is too large
	case connect.CodeInvalidArgument:
		return &answer{message: sent.Message(), kind: wrong}
	case connect.CodeFailedPrecondition:
		return &answer{message: sent.Message(), kind: ErrRefused}
	case connect.CodeUnavailable, connect.CodeAborted:
		return &answer{message: sent.Message(), kind: ErrUnavailable}
	case connect.CodePermissionDenied, connect.CodeUnauthenticated:
		return &answer{message: sent.Message(), kind: ErrForbidden}
	case connect.CodeDeadlineExceeded:
		return &answer{message: sent.Message(), kind: context.DeadlineExceeded}
	default:
		return fmt.Errorf("%s: the manager answered: %w", what, err)
	}
}
