package orchestrator

import (
	"context"
	"fmt"

	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// Explain says why a queue has the number of workers that it has, and what limits it now.
func (c *control) Explain(ctx context.Context, r *apiv1.ExplainRequest) (*apiv1.ExplainResponse, error) {
	queue := r.GetQueue()
	s, err := c.served(queue)
	if err != nil {
		return nil, err
	}
	e := s.pool.Explain()
	answer := &apiv1.ExplainResponse{Now: protoDecision(e.Now)}
	for _, d := range e.Before {
		answer.Before = append(answer.Before, protoDecision(d))
	}
	counts, err := c.counts(ctx)
	if err == nil {
		err = c.o.brokerError()
	}
	if err != nil {
		answer.Limits = append(answer.Limits, "broker: "+err.Error())
	}
	if why := paused(counts[queue].Paused, s.gate.closed.Load()); why != "" {
		answer.Limits = append(answer.Limits, "paused: the queue is "+why)
	}
	answer.Limits = append(answer.Limits, e.Limits...)
	if n := s.locks.Waiting(); n > 0 {
		limit := fmt.Sprintf("lock: %d tasks wait for the locks that others have", n)
		if err := c.o.locker.Health(); err != nil {
			limit = fmt.Sprintf("lock: %d tasks wait, and the store of locks does not answer: %v", n, err)
		}
		answer.Limits = append(answer.Limits, limit)
	}
	return answer, nil
}

func protoDecision(d pool.Decided) *apiv1.Decision {
	return &apiv1.Decision{
		AtMs: d.At.UnixMilli(), Start: int32(d.Start), Stop: int32(d.Stop), Reason: d.Reason, //nolint:gosec // few
		Ready: int32(d.Ready), Starting: int32(d.Starting), Leaving: int32(d.Leaving), //nolint:gosec // few
		Waiting: int32(d.Waiting), Running: int32(d.Running), Capacity: int32(d.Capacity), //nolint:gosec // few
		MeanRunUs: d.MeanRun.Microseconds(), StartCostUs: d.StartCost.Microseconds(),
	}
}
