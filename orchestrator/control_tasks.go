package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

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
		Filter: filterOf(r.GetFilter(), r.GetFaultKind()), Payloads: r.GetWithPayload(),
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
	changes, n, next, err := c.change(ctx, "retried", r.GetTasks(), c.ledger.Retry, c.ledger.RetryDead)
	if err != nil {
		return nil, err
	}
	return &apiv1.RetryTasksResponse{Changes: changes, Changed: n, NextPageToken: next}, nil
}

// DropTasks takes tasks that do not run out of their queue.
func (c *control) DropTasks(ctx context.Context, r *apiv1.DropTasksRequest) (*apiv1.DropTasksResponse, error) {
	changes, n, next, err := c.change(ctx, "dropped", r.GetTasks(), c.ledger.Drop, c.ledger.DropDead)
	if err != nil {
		return nil, err
	}
	return &apiv1.DropTasksResponse{Changes: changes, Changed: n, NextPageToken: next}, nil
}

type (
	changeTasks func(ctx context.Context, queue string, keys []string) ([]ledger.Change, error)
	changeDead  func(ctx context.Context, s ledger.Selection) (ledger.Part, error)
)

// filterOf reads a filter. A fault kind is the older way to name a reason.
func filterOf(f *apiv1.DeadFilter, kind taskv1.FaultKind) ledger.Filter {
	filter := ledger.Filter{Reason: cmp.Or(f.GetReason(), fault.Kind(kind).String()), Match: f.GetMatch()}
	if ms := f.GetDiedBeforeMs(); ms != 0 {
		filter.DiedBefore = time.UnixMilli(ms)
	}
	if ms := f.GetDiedSinceMs(); ms != 0 {
		filter.DiedSince = time.UnixMilli(ms)
	}
	return filter
}

// change changes what a selection names, and says so in the log.
func (c *control) change(ctx context.Context, done string, s *apiv1.TaskSelection, named changeTasks, dead changeDead) ([]*apiv1.TaskChange, int64, string, error) {
	ways := 0
	for _, given := range []bool{len(s.GetIds()) > 0, s.GetDeadOfQueue() != "", s.GetDead() != nil} {
		if given {
			ways++
		}
	}
	switch queue := s.GetDeadOfQueue(); {
	case ways > 1:
		return nil, 0, "", api.Invalid(errors.New("tasks: name tasks by their IDs, or a queue for all of its dead letters, not both"))
	case ways == 0:
		return nil, 0, "", api.Invalid(errors.New("tasks: name at least one task, or a queue for all of its dead letters"))
	case queue != "":
		return c.changeDead(ctx, done, ledger.Selection{Queue: queue, Filter: filterOf(nil, s.GetFaultKind())}, dead)
	case s.GetFaultKind() != taskv1.FaultKind_FAULT_KIND_UNSPECIFIED:
		return nil, 0, "", api.Invalid(errors.New("fault_kind: it chooses among the dead letters of a queue, not among tasks that are named"))
	case s.GetDead() != nil:
		d := s.GetDead()
		return c.changeDead(ctx, done, ledger.Selection{
			Queue: d.GetQueue(), Filter: filterOf(d.GetFilter(), 0), DryRun: d.GetDryRun(), Limit: int(d.GetLimit()), Token: d.GetPageToken(),
		}, dead)
	case len(s.GetIds()) > ledger.MaxIDs:
		return nil, 0, "", api.Invalid(fmt.Errorf("tasks: %d are more than the %d that may be changed at once", len(s.GetIds()), ledger.MaxIDs))
	}
	changes, n, err := c.changeNamed(ctx, done, s.GetIds(), named)
	return changes, n, "", err
}

// changeDead changes dead letters of a queue, and returns those that were refused.
func (c *control) changeDead(ctx context.Context, done string, s ledger.Selection, how changeDead) ([]*apiv1.TaskChange, int64, string, error) {
	if err := c.exists(ctx, s.Queue); err != nil {
		return nil, 0, "", err
	}
	part, err := how(ctx, s)
	if part.Changed > 0 && !s.DryRun {
		c.o.log.Info("dead letters were "+done, "queue", s.Queue, "tasks", part.Changed, "who", api.Caller(ctx))
	}
	return protoChanges(part.Refused), int64(part.Changed), part.Next, refusal(err)
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
