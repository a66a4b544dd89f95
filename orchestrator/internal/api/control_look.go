package api

import (
	"context"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// Managers lists the managers that share the broker.
func (c *control) Managers(ctx context.Context, _ *apiv1.ManagersRequest) (*apiv1.ManagersResponse, error) {
	response, err := c.control.Managers(ctx)
	return answer(ctx, response, err)
}

// Examine looks at what the manager stands on.
func (c *control) Examine(ctx context.Context, _ *apiv1.ExamineRequest) (*apiv1.ExamineResponse, error) {
	response, err := c.control.Examine(ctx)
	return answer(ctx, response, err)
}
