package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
)

// SubmitBatch puts many tasks into their queues.
func (s *tasks) SubmitBatch(ctx context.Context, r *apiv1.SubmitBatchRequest) (*apiv1.SubmitBatchResponse, error) {
	if n := len(r.GetTasks()); n > client.MaxBatch {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("tasks: %d are more than one call takes; send at most %d at once", n, client.MaxBatch))
	}
	work := make([]client.Work, 0, len(r.GetTasks()))
	places := make([]int, 0, len(r.GetTasks()))
	answer := &apiv1.SubmitBatchResponse{Results: make([]*apiv1.SubmitResult, len(r.GetTasks()))}
	for i, t := range r.GetTasks() {
		options, err := optionsOf(t)
		if err != nil {
			answer.Results[i] = refusedResult(fmt.Errorf("%w: %w", client.ErrInvalidPayload, err))
			continue
		}
		work = append(work, client.Work{Queue: t.GetQueue(), Payload: json.RawMessage(t.GetPayload()), Options: options})
		places = append(places, i)
	}
	batch, err := s.client.SubmitBatch(ctx, work)
	if err != nil {
		return nil, wire(ctx, err)
	}
	for n, b := range batch {
		if b.Err != nil {
			answer.Results[places[n]] = refusedResult(b.Err)
			continue
		}
		answer.Results[places[n]] = &apiv1.SubmitResult{Result: &apiv1.SubmitResult_Submitted{
			Submitted: &apiv1.SubmitResponse{Id: b.ID.String(), Joined: b.Joined, State: taskv1.State(b.State)},
		}}
	}
	return answer, nil
}

// refusedResult says why a task was not submitted.
func refusedResult(err error) *apiv1.SubmitResult {
	reason := client.ReasonUnavailable
	switch {
	case errors.Is(err, client.ErrUnknownQueue):
		reason = client.ReasonUnknownQueue
	case errors.Is(err, client.ErrInvalidPayload):
		reason = client.ReasonInvalidPayload
	}
	return &apiv1.SubmitResult{Result: &apiv1.SubmitResult_Error{Error: &apiv1.SubmitError{Reason: reason, Message: strings.ToValidUTF8(err.Error(), "\uFFFD")}}}
}

// optionsOf reads the options of a submit. An error says which field is wrong.
func optionsOf(r *apiv1.SubmitRequest) ([]client.Option, error) {
	within := func(name string, ms int64) error {
		if ms < 0 || ms > maxDelay.Milliseconds() {
			return fmt.Errorf("%s: %d is not between 0 and %d", name, ms, maxDelay.Milliseconds())
		}
		return nil
	}
	if err := within("delay_ms", r.GetDelayMs()); err != nil {
		return nil, err
	}
	options := []client.Option{client.Unique(!r.GetNotUnique()), client.Delay(time.Duration(r.GetDelayMs()) * time.Millisecond)}
	if r.RetentionMs != nil {
		if err := within("retention_ms", r.GetRetentionMs()); err != nil {
			return nil, err
		}
		options = append(options, client.Retention(time.Duration(r.GetRetentionMs())*time.Millisecond))
	}
	switch ms := r.GetDeadlineMs(); {
	case ms < 0:
		return nil, fmt.Errorf("deadline_ms: %d is negative; it is a Unix time in milliseconds", ms)
	case ms > time.Now().Add(maxDelay).UnixMilli():
		return nil, fmt.Errorf("deadline_ms: %d is too far away", ms)
	case ms > 0:
		options = append(options, client.Deadline(time.UnixMilli(ms)))
	}
	if r.GetUrgent() {
		options = append(options, client.Urgent())
	}
	return options, nil
}
