package client

import (
	"context"
	"fmt"
	"slices"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

// MaxBatch bounds the tasks of one call of the API. SubmitBatch is not bounded by it: it makes as many calls as it needs.
const MaxBatch = 1000

// maxBatchBytes bounds the payloads and the names of the queues of one call, in bytes, but for a single one that is larger.
const maxBatchBytes = 2 << 20

// Reasons why a task of a batch was not submitted, as they travel.
const (
	ReasonUnknownQueue   = "unknown_queue"
	ReasonInvalidPayload = "invalid_payload"
	ReasonUnavailable    = "unavailable"
)

// SubmitBatch implements Client: one call for every MaxBatch tasks.
func (a *api) SubmitBatch(ctx context.Context, work []Work) ([]Batched, error) {
	all := make([]Batched, len(work))
	requests := make([]*apiv1.SubmitRequest, 0, len(work))
	places := make([]int, 0, len(work))
	for i, w := range work {
		data, err := EncodePayload(w.Payload)
		if err != nil {
			all[i].Err = fmt.Errorf("%s: %w: %w", submitTo(w.Queue), ErrInvalidPayload, err)
			continue
		}
		requests, places = append(requests, requestOf(w.Queue, data, Apply(w.Options))), append(places, i)
	}
	for len(requests) > 0 {
		n := callSize(requests)
		if err := a.submitSome(ctx, fmt.Sprintf("submit %d tasks", n), requests[:n], places[:n], all); err != nil {
			for _, i := range places {
				all[i].Err = err
			}
			return all, err
		}
		requests, places = requests[n:], places[n:]
	}
	return all, nil
}

func submitTo(queue string) string { return fmt.Sprintf("submit to queue %.80q", queue) }

// callSize is how many of the requests go into one call.
func callSize(requests []*apiv1.SubmitRequest) int {
	n, size := 0, 0
	for n < min(len(requests), MaxBatch) {
		size += len(requests[n].GetPayload()) + len(requests[n].GetQueue())
		if n > 0 && size > maxBatchBytes {
			break
		}
		n++
	}
	return n
}

// submitSome makes one call and writes down what came of each task at its place.
func (a *api) submitSome(ctx context.Context, what string, requests []*apiv1.SubmitRequest, places []int, all []Batched) error {
	response, err := do(ctx, a, what, ErrUnavailable, ErrInvalidPayload, a.quick.SubmitBatch, &apiv1.SubmitBatchRequest{Tasks: requests})
	if err != nil {
		return err
	}
	if len(response.GetResults()) != len(requests) {
		return fmt.Errorf("%s: %w: the manager answered for %d", what, ErrUnavailable, len(response.GetResults()))
	}
	for n, r := range response.GetResults() {
		b := &all[places[n]]
		if s := r.GetSubmitted(); s != nil {
			b.Submitted, b.Err = submittedOf(submitTo(requests[n].GetQueue()), s)
			continue
		}
		b.Err = &answer{message: r.GetError().GetMessage(), kind: errorOf(r.GetError().GetReason())}
	}
	return nil
}

func errorOf(reason string) error {
	switch reason {
	case ReasonUnknownQueue:
		return ErrUnknownQueue
	case ReasonInvalidPayload:
		return ErrInvalidPayload
	default:
		return ErrUnavailable
	}
}

// IDs returns the IDs of the tasks of a batch that were submitted, each once: what to wait for.
func IDs(batch []Batched) []task.ID {
	ids := make([]task.ID, 0, len(batch))
	seen := make(map[task.ID]bool, len(batch))
	for _, b := range batch {
		if b.Err == nil && !seen[b.ID] {
			seen[b.ID] = true
			ids = append(ids, b.ID)
		}
	}
	return slices.Clip(ids)
}
