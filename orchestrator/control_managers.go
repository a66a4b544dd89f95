package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// rosterTimeout bounds the question for the list of managers.
const rosterTimeout = time.Second

// Managers lists the managers that share this one's Redis.
func (c *control) Managers(ctx context.Context) (*apiv1.ManagersResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, rosterTimeout)
	defer cancel()
	all, ahead, err := c.o.roster.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrUnavailable, err)
	}
	answer := &apiv1.ManagersResponse{ClockAheadMs: ahead.Milliseconds()}
	for _, m := range all {
		state := m.State
		if m.Absent() {
			state = "absent"
		}
		answer.Managers = append(answer.Managers, &apiv1.ManagerEntry{
			Name: m.Name, Host: m.Host, Pid: int32(m.PID), Version: m.Version, StartedMs: m.Started.UnixMilli(), State: state, //nolint:gosec // fits
			Queues: m.Queues, Workers: int32(m.Workers), Running: int32(m.Running), SilentMs: m.Silence.Milliseconds(), Own: m.Own, //nolint:gosec // fits
		})
	}
	return answer, nil
}
