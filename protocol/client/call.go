package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-jobs/drover/protocol/task"
)

// TaskError says that a task ended without a result: errors.As finds it in what Call and Result return.
type TaskError struct {
	Task *task.Task // its record
}

// Error says how it ended and why.
func (e *TaskError) Error() string {
	text := fmt.Sprintf("task %s ended %s after %d attempts", e.Task.ID, e.Task.State, e.Task.Attempts)
	if e.Task.Fault != nil {
		text += ": " + e.Task.Fault.Error()
	}
	return text
}

// Unwrap makes errors.As find the fault.
func (e *TaskError) Unwrap() error {
	if e.Task.Fault == nil {
		return nil
	}
	return e.Task.Fault
}

// ErrNoRecord says that a task has completed but its result is not kept: it was submitted with Retention(0), or its queue has
// retention 0.
var ErrNoRecord = errors.New("the task has completed, but no record of it is kept, and so no result")

// Result reads the result of a task that has ended. Errors: a *TaskError when it did not complete, ErrNoRecord when only that it has
// completed is known, or one that says that the result is no T.
func Result[T any](t *task.Task) (T, error) {
	var result T
	if t.State != task.Completed {
		return result, &TaskError{Task: t}
	}
	switch {
	case len(t.Result) > 0:
	case t.Manager == "": // every record bears the manager that ended the task
		return result, fmt.Errorf("task %s: %w: submit it with a longer Retention", t.ID, ErrNoRecord)
	default:
		return result, nil // its worker returned nothing
	}
	if err := json.Unmarshal(t.Result, &result); err != nil {
		return result, fmt.Errorf("read the result of task %s as %T: %w", t.ID, result, err)
	}
	return result, nil
}

// Call submits a task, waits for its end and returns its result. Once the task is submitted it waits as long as ctx allows,
// whatever becomes of the manager and of Redis meanwhile. When ctx ends first the task goes on; submitted again it is joined.
// Errors: those of Submit and Result, ErrUnknownTask when its record was not to be had any more, ErrClosed, and ctx.Err().
func Call[T any](ctx context.Context, c Client, queue string, payload any, options ...Option) (T, error) {
	var none T
	submitted, err := c.Submit(ctx, queue, payload, options...)
	if err != nil {
		return none, err
	}
	ended, err := Wait(ctx, c, submitted.ID)
	for pause := reconnectFirst; errors.Is(err, ErrUnavailable); pause = min(2*pause, reconnectLast) {
		if rest(ctx, pause) != nil {
			return none, fmt.Errorf("wait for task %s: %w", submitted.ID, ctx.Err())
		}
		ended, err = Wait(ctx, c, submitted.ID)
	}
	if err != nil {
		return none, err
	}
	return Result[T](ended)
}
