// Package client is how an application submits tasks to Drover and waits for their results.
//
// There are two transports behind one interface. Dial, in this package, speaks to a manager's API and needs no access to
// Redis; it is also what plugins use. The package direct, beside this one, speaks straight to Redis and submits even while
// every manager is down. Both keep the same promises, and one suite of tests runs on both.
//
// A client is safe for concurrent use. It starts nothing that outlives Close.
package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// Client submits and follows tasks.
type Client interface {
	// Submit puts a task into its queue. The payload is anything that encoding/json turns into one object, or a
	// json.RawMessage. The same work submitted while it waits or runs is one task: the second submit joins the first
	// and says so. Errors: ErrUnknownQueue, ErrInvalidPayload, ErrUnavailable.
	Submit(ctx context.Context, queue string, payload any, options ...Option) (Submitted, error)
	// SubmitBatch submits many tasks in few round trips and returns what came of each, in their order; what is wrong with one
	// keeps none of the others out. The error is that of the connection; what came of each is told then, too.
	SubmitBatch(ctx context.Context, work []Work) ([]Batched, error)
	// Get says what is known of a task now, with its payload while it lies in its queue, dead letters included. Errors: ErrUnknownTask, ErrUnavailable.
	Get(ctx context.Context, id task.ID) (*task.Task, error)
	// Subscribe yields the end of each of the tasks as it comes, once each, and after the last it is over. A task that
	// had ended before is yielded too; one that does not exist is yielded as Unknown. It cannot miss an end: it
	// subscribes first and then reads what is stored. An error ends it, ctx.Err() included.
	Subscribe(ctx context.Context, ids []task.ID, options ...FollowOption) iter.Seq2[Update, error]
	// Cancel ends a task that has not ended: a waiting one at once, a running one by asking its worker, and by killing it
	// if it does not listen. It returns the state right after the request. Errors: ErrUnknownTask, ErrUnavailable.
	Cancel(ctx context.Context, id task.ID) (task.State, error)
	// Close ends every call in progress and frees the connections.
	Close() error
}

// Submitted is the answer to a submit.
type Submitted struct {
	ID task.ID
	// Joined is true when a task with the same content was already waiting or running; its result will be this one's too.
	Joined bool
	State  task.State
}

// Work is one task of a batch.
type Work struct {
	Queue   string
	Payload any
	Options []Option
}

// Batched is what came of one task of a batch.
type Batched struct {
	Submitted
	// Err is why the task was not submitted, with the errors of Submit; after an error of the connection it is not known
	// whether it was, and submitting it again joins it if so.
	Err error
}

// Update is one thing that a subscription yields.
type Update struct {
	ID task.ID
	// Ended is set when the task has ended: its record.
	Ended *task.Task
	// Unknown is true when there is no such task: it was never submitted, or its record has expired.
	Unknown bool
	// Event is set for anything else that happened, when it was asked for with WithEvents.
	Event *task.Event
}

// Errors that a caller may test for with errors.Is.
var (
	ErrUnknownQueue   = errors.New("no such queue")
	ErrUnknownTask    = errors.New("no such task")
	ErrInvalidPayload = errors.New("invalid payload")
	ErrUnavailable    = errors.New("not reachable")
	ErrClosed         = errors.New("the client is closed")
	// ErrRefused: the request is sound, but the manager does not do it as things stand.
	ErrRefused = errors.New("refused")
	// ErrBusy: the caller is over a limit of the manager; try again after a pause, and ask for more at once.
	ErrBusy = errors.New("too much at once")
	// ErrForbidden: the socket that was used does not allow the call.
	ErrForbidden = errors.New("not allowed")
	// ErrNoManager: nobody listens at the address. It is an ErrUnavailable as well; Redis being away is not one of these.
	ErrNoManager = fmt.Errorf("no manager there: %w", ErrUnavailable)
)

// Options is what the options of a submit say.
type Options struct {
	NotUnique bool
	Delay     time.Duration
	Deadline  time.Time      // zero for none
	Retention *time.Duration // nil leaves it to the queue
	Urgent    bool
}

// Option changes how a task is submitted.
type Option func(*Options)

// Unique says whether the same work is one task, which is the default. Unique(false) gives the task an ID of its own, so
// that it joins no other.
func Unique(unique bool) Option { return func(o *Options) { o.NotUnique = !unique } }

// Delay keeps the task from running for d, rounded up to a whole second. A delay that is not positive is none.
func Delay(d time.Duration) Option { return func(o *Options) { o.Delay = max(0, d) } }

// Deadline is when the task must have ended, up to the next whole second: if it has not begun by then it expires, and a run is
// stopped then. The zero time is none.
func Deadline(t time.Time) Option { return func(o *Options) { o.Deadline = t } }

// Retention keeps the record of the task's end for d, up to the next whole second, instead of what the queue's setting says; 0
// keeps none, and then nobody can wait for the result.
func Retention(d time.Duration) Option { return func(o *Options) { d := max(0, d); o.Retention = &d } }

// Urgent puts the task at the head of its queue.
func Urgent() Option { return func(o *Options) { o.Urgent = true } }

// Apply returns what the options say together. Transports call it.
func Apply(options []Option) Options {
	var o Options
	for _, option := range options {
		option(&o)
	}
	return o
}

// Following is what the options of a subscription say.
type Following struct {
	Events bool
}

// FollowOption changes what a subscription yields.
type FollowOption func(*Following)

// WithEvents also yields what happens before the end: progress and failed runs.
func WithEvents() FollowOption { return func(f *Following) { f.Events = true } }

// ApplyFollow returns what the options say together. Transports call it.
func ApplyFollow(options []FollowOption) Following {
	var f Following
	for _, option := range options {
		option(&f)
	}
	return f
}

// Wait returns the record of a task once it has ended, however it ended: look at its State. Errors: ErrUnknownTask,
// ErrUnavailable, or ctx.Err() when the caller's time ran out; the task goes on then.
func Wait(ctx context.Context, c Client, id task.ID) (*task.Task, error) {
	ended, err := WaitAll(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return ended[0], nil
}

// WaitAll returns the records of the tasks in the order of their IDs once all have ended. Errors as with Wait.
func WaitAll(ctx context.Context, c Client, ids ...task.ID) ([]*task.Task, error) {
	ended := make(map[task.ID]*task.Task, len(ids))
	for update, err := range c.Subscribe(ctx, ids) {
		if err != nil {
			return nil, err
		}
		if update.Unknown {
			return nil, fmt.Errorf("wait for task %s: %w: it was never submitted, or its record has expired", update.ID, ErrUnknownTask)
		}
		if update.Ended != nil {
			ended[update.ID] = update.Ended
		}
	}
	all := make([]*task.Task, len(ids))
	for i, id := range ids {
		if all[i] = ended[id]; all[i] == nil {
			return nil, fmt.Errorf("wait for task %s: %w: the subscription ended early", id, ErrUnavailable)
		}
	}
	return all, nil
}
