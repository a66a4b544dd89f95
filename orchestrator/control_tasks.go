package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/ledger"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// ListTasks lists tasks of any queue in this Redis.
func (c *control) ListTasks(ctx context.Context, r *apiv1.ListTasksRequest) (*apiv1.ListTasksResponse, error) {
	if err := c.exists(ctx, r.GetQueue()); err != nil {
		return nil, err
	}
	page, err := c.ledger.List(ctx, ledger.Query{
		Queue: r.GetQueue(), State: task.State(r.GetState()), Limit: int(r.GetLimit()), Token: r.GetPageToken(),
		Fault: fault.Kind(r.GetFaultKind()), Payloads: r.GetWithPayload(),
	})
	if err != nil {
		return nil, refusal(err)
	}
	answer := &apiv1.ListTasksResponse{NextPageToken: page.Next, Total: page.Total, Tasks: make([]*taskv1.Task, len(page.Tasks))}
	for i, t := range page.Tasks {
		answer.Tasks[i] = t.Proto()
	}
	return answer, nil
}

// RetryTasks puts dead letters back at the tail of their queue, and failed tasks at its head.
func (c *control) RetryTasks(ctx context.Context, r *apiv1.RetryTasksRequest) (*apiv1.RetryTasksResponse, error) {
	changes, n, err := c.change(ctx, "retried", r.GetTasks(), c.ledger.Retry, c.ledger.RetryDead)
	if err != nil {
		return nil, err
	}
	return &apiv1.RetryTasksResponse{Changes: changes, Changed: n}, nil
}

// DropTasks takes tasks that do not run out of their queue.
func (c *control) DropTasks(ctx context.Context, r *apiv1.DropTasksRequest) (*apiv1.DropTasksResponse, error) {
	changes, n, err := c.change(ctx, "dropped", r.GetTasks(), c.ledger.Drop, c.ledger.DropDead)
	if err != nil {
		return nil, err
	}
	return &apiv1.DropTasksResponse{Changes: changes, Changed: n}, nil
}

type (
	changeTasks func(ctx context.Context, queue string, keys []string) ([]ledger.Change, error)
	changeDead  func(ctx context.Context, queue string, died fault.Kind) (int, []ledger.Change, error)
)

// change changes what a selection names, and says so in the log.
func (c *control) change(ctx context.Context, done string, s *apiv1.TaskSelection, named changeTasks, dead changeDead) ([]*apiv1.TaskChange, int64, error) {
	switch queue := s.GetDeadOfQueue(); {
	case queue != "" && len(s.GetIds()) > 0:
		return nil, 0, api.Invalid(errors.New("tasks: name tasks by their IDs, or a queue for all of its dead letters, not both"))
	case queue != "":
		if err := c.exists(ctx, queue); err != nil {
			return nil, 0, err
		}
		n, refused, err := dead(ctx, queue, fault.Kind(s.GetFaultKind()))
		if n > 0 {
			c.o.log.Info("dead letters were "+done, "queue", queue, "tasks", n, "who", api.Caller(ctx))
		}
		return protoChanges(refused), int64(n), refusal(err)
	case len(s.GetIds()) == 0:
		return nil, 0, api.Invalid(errors.New("tasks: name at least one task, or a queue for all of its dead letters"))
	case len(s.GetIds()) > ledger.MaxIDs:
		return nil, 0, api.Invalid(fmt.Errorf("tasks: %d are more than the %d that may be changed at once", len(s.GetIds()), ledger.MaxIDs))
	case s.GetFaultKind() != taskv1.FaultKind_FAULT_KIND_UNSPECIFIED:
		return nil, 0, api.Invalid(errors.New("fault_kind: it chooses among the dead letters of a queue, not among tasks that are named"))
	}
	return c.changeNamed(ctx, done, s.GetIds(), named)
}

// changeNamed changes tasks queue by queue, and answers in the order in which they were named, once for each.
func (c *control) changeNamed(ctx context.Context, done string, ids []string, how changeTasks) ([]*apiv1.TaskChange, int64, error) {
	var order []task.ID
	byQueue := map[string][]string{}
	known := map[task.ID]bool{}
	for _, text := range ids {
		id, err := task.ParseID(text)
		if err != nil {
			return nil, 0, api.Invalid(err)
		}
		if known[id] {
			continue
		}
		known[id] = true
		order = append(order, id)
		byQueue[id.Queue] = append(byQueue[id.Queue], id.Key)
	}
	became := make(map[task.ID]ledger.Change, len(order))
	changed := 0
	for queue, keys := range byQueue {
		changes, err := how(ctx, queue, keys)
		for _, ch := range changes {
			became[ch.ID] = ch
			if ch.Refused == "" {
				changed++
			}
		}
		if err != nil {
			return nil, 0, refusal(err)
		}
	}
	if changed > 0 {
		c.o.log.Info("tasks were "+done, "tasks", changed, "first", order[0], "who", api.Caller(ctx))
	}
	ordered := make([]ledger.Change, len(order))
	for i, id := range order {
		ordered[i] = became[id]
	}
	return protoChanges(ordered), int64(changed), nil
}

func protoChanges(changes []ledger.Change) []*apiv1.TaskChange {
	all := make([]*apiv1.TaskChange, len(changes))
	for i, ch := range changes {
		all[i] = &apiv1.TaskChange{Id: ch.ID.String(), State: taskv1.State(ch.State), Refused: ch.Refused}
	}
	return all
}
