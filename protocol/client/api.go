package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
	"github.com/drover-jobs/drover/protocol/task"
)

// api is the transport over a manager's API.
type api struct {
	link   *link
	tasks  apiv1connect.TaskServiceClient
	quick  apiv1connect.TaskServiceClient // for calls that are answered at once
	calls  calls
	gather gatherer
}

var _ Client = (*api)(nil)

// calls is what is in progress, so that Close can end it.
type calls struct {
	mu      sync.Mutex
	closed  bool
	cancels map[*context.CancelFunc]struct{}
}

// begin returns a context that also ends with Close, and what to call when the call is over.
func (c *calls) begin(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	c.cancels[&cancel] = struct{}{}
	return ctx, func() {
		cancel()
		c.mu.Lock()
		delete(c.cancels, &cancel)
		c.mu.Unlock()
	}, nil
}

func (c *calls) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// end cancels everything and refuses what comes. It does not wait: a subscription is over when its consumer comes back
// for the next update.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for cancel := range c.cancels {
		(*cancel)()
	}
}

// do makes one call.
func do[Req, Res any](ctx context.Context, a *api, what string, notFound, wrong error, call func(context.Context, *Req) (*Res, error), request *Req) (*Res, error) {
	inner, done, err := a.calls.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer done()
	response, err := call(inner, request)
	if err == nil {
		return response, nil
	}
	if ctx.Err() == nil && a.calls.isClosed() {
		return nil, fmt.Errorf("%s: %w", what, ErrClosed)
	}
	return nil, explain(ctx, what, err, notFound, wrong)
}

// Submit implements Client. Submits to one queue that come at the same time share calls: see gatherer.
func (a *api) Submit(ctx context.Context, queue string, payload any, options ...Option) (Submitted, error) {
	data, err := EncodePayload(payload)
	if err != nil {
		return Submitted{}, fmt.Errorf("%s: %w: %w", submitTo(queue), ErrInvalidPayload, err)
	}
	if err := ctx.Err(); err != nil {
		return Submitted{}, fmt.Errorf("%s: %w", submitTo(queue), err)
	}
	request := requestOf(queue, data, Apply(options))
	if others := a.gather.enter(request); others != nil {
		return a.await(ctx, others)
	}
	defer a.gather.leave(queue)
	return a.submitOne(ctx, request)
}

// submitOne makes a call for one task.
func (a *api) submitOne(ctx context.Context, request *apiv1.SubmitRequest) (Submitted, error) {
	what := submitTo(request.GetQueue())
	response, err := do(ctx, a, what, ErrUnknownQueue, ErrInvalidPayload, a.quick.Submit, request)
	if err != nil {
		return Submitted{}, err
	}
	return submittedOf(what, response)
}

// requestOf is the request that submits a task. Times are rounded up to the millisecond.
func requestOf(queue string, payload []byte, o Options) *apiv1.SubmitRequest {
	request := &apiv1.SubmitRequest{Queue: queue, Payload: payload, NotUnique: o.NotUnique, Urgent: o.Urgent}
	if o.Delay > 0 {
		request.DelayMs = (o.Delay - 1).Milliseconds() + 1
	}
	if !o.Deadline.IsZero() {
		request.DeadlineMs = o.Deadline.Add(time.Millisecond - 1).UnixMilli()
	}
	if o.Retention != nil {
		ms := (*o.Retention + time.Millisecond - 1).Milliseconds()
		request.RetentionMs = &ms
	}
	return request
}

// submittedOf reads the answer to a submit.
func submittedOf(what string, response *apiv1.SubmitResponse) (Submitted, error) {
	id, err := task.ParseID(response.GetId())
	if err != nil {
		return Submitted{}, fmt.Errorf("%s: the manager answered with an ID that is none: %w", what, err)
	}
	return Submitted{ID: id, Joined: response.GetJoined(), State: task.State(response.GetState())}, nil
}

// Get implements Client. The payload is there as long as the task has not ended.
func (a *api) Get(ctx context.Context, id task.ID) (*task.Task, error) {
	what := fmt.Sprintf("look at task %s", id)
	response, err := do(ctx, a, what, ErrUnknownTask, ErrUnknownTask, a.quick.Get, &apiv1.GetRequest{Id: id.String(), WithPayload: true})
	if err != nil {
		return nil, err
	}
	t, err := task.FromProto(response.GetTask())
	if err != nil {
		return nil, fmt.Errorf("%s: the manager answered with a task that is none: %w", what, err)
	}
	return t, nil
}

// Cancel implements Client. Errors also: ErrForbidden on the socket of plugins.
func (a *api) Cancel(ctx context.Context, id task.ID) (task.State, error) {
	what := fmt.Sprintf("cancel task %s", id)
	response, err := do(ctx, a, what, ErrUnknownTask, ErrUnknownTask, a.tasks.Cancel, &apiv1.CancelRequest{Id: id.String()})
	if err != nil {
		return task.Unknown, err
	}
	return task.State(response.GetState()), nil
}

// Close implements Client.
func (a *api) Close() error {
	a.calls.end()
	err := a.link.close()
	a.gather.close()
	return err
}
