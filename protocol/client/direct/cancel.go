package direct

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	// defaultRetention is how long the record of a cancelled task is kept when its queue does not say.
	defaultRetention = time.Hour
	// maxMoves bounds how often a cancel looks again because the task moved meanwhile.
	maxMoves = 100
)

// cancelSource ends a task that no manager has, or asks the manager that has it.
//
// KEYS[1] the task's hash
// KEYS[2] pending
// KEYS[3] scheduled
// KEYS[4] retry
// KEYS[5] the task's record
// ARGV[1] the task's key
// ARGV[2] the state, in asynq's words, in which the caller saw the task
// ARGV[3] the record to leave
// ARGV[4] how long it is kept, in seconds
// ARGV[5] the events channel
// ARGV[6] the event to publish there
// ARGV[7] the cancel channel
//
// Returns 1 when that was done, 0 when the task is in another state by now.
const cancelSource = `
if redis.call('HGET', KEYS[1], 'state') ~= ARGV[2] then
	return 0
end
if ARGV[2] == 'active' then
	redis.call('PUBLISH', ARGV[7], ARGV[1])
	return 1
elseif ARGV[2] == 'pending' then
	redis.call('LREM', KEYS[2], 0, ARGV[1])
elseif ARGV[2] == 'scheduled' then
	redis.call('ZREM', KEYS[3], ARGV[1])
else
	redis.call('ZREM', KEYS[4], ARGV[1])
end
local unique = redis.call('HGET', KEYS[1], 'unique_key')
if unique and unique ~= '' and redis.call('GET', unique) == ARGV[1] then
	redis.call('DEL', unique)
end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[5], ARGV[3], 'EX', ARGV[4])
redis.call('PUBLISH', ARGV[5], ARGV[6])
return 1
`

// Cancel implements client.Client. A running task is announced to the managers; the one that has it ends it.
func (c *Client) Cancel(ctx context.Context, id task.ID) (task.State, error) {
	state, err := c.cancel(ctx, id)
	if err != nil {
		return task.Unknown, fmt.Errorf("cancel task %s: %w", id, err)
	}
	return state, nil
}

func (c *Client) cancel(ctx context.Context, id task.ID) (task.State, error) {
	retention, err := c.retention(ctx, id.Queue)
	if err != nil {
		return task.Unknown, err
	}
	for range maxMoves {
		seen, err := c.peek(ctx, id, recordOnly)
		switch {
		case err != nil:
			return task.Unknown, err
		case seen.task == nil:
			return task.Unknown, fmt.Errorf("%w: it was never submitted, or its record has expired", client.ErrUnknownTask)
		case seen.task.State.Ended():
			return seen.task.State, nil
		case seen.asynq == task.AsynqAggregating || seen.task.State == task.Unknown:
			return task.Unknown, fmt.Errorf("it is %q, which no manager of Drover serves: remove it with the tools of asynq", seen.asynq)
		}
		done, err := c.tryCancel(ctx, seen, retention)
		switch {
		case err != nil:
			return task.Unknown, err
		case done && seen.asynq == task.AsynqActive:
			return task.Running, nil
		case done:
			return task.Cancelled, nil
		}
	}
	return task.Unknown, fmt.Errorf("%w: it moves all the time; try again", client.ErrUnavailable)
}

// tryCancel cancels the task if it still is where it was seen.
func (c *Client) tryCancel(ctx context.Context, seen sight, retention time.Duration) (bool, error) {
	id, now := seen.task.ID, time.Now().UTC()
	record := *seen.task
	record.State, record.Payload, record.Ended, record.RunAt = task.Cancelled, nil, now, time.Time{}
	record.Fault = fault.New(fault.Cancelled, "cancelled while it waited")
	encoded, err := task.EncodeRecord(&record)
	if err != nil {
		return false, fmt.Errorf("write its record: %w", err)
	}
	event, err := task.EncodeEvents(&task.Event{ID: id, State: task.Cancelled, At: now, Attempts: record.Attempts, Fault: fault.Cancelled})
	if err != nil {
		return false, fmt.Errorf("write its end: %w", err)
	}
	keys := task.KeysOf(id.Queue)
	return ask(ctx, c, func(ctx context.Context) (bool, error) {
		return c.scripts.cancel.Run(ctx, c.rdb,
			[]string{keys.Task(id.Key), keys.Pending(), keys.Scheduled(), keys.Retry(), keys.Record(id.Key)},
			id.Key, seen.asynq, encoded, int64(retention/time.Second), keys.EventsChannel(), event, keys.CancelChannel()).Bool()
	})
}

// retention is how long the record of a cancelled task of the queue is kept. A queue that no manager has published has
// tasks of foreign clients at most, and the default.
func (c *Client) retention(ctx context.Context, queue string) (time.Duration, error) {
	info, err := c.queue(ctx, queue)
	switch {
	case errors.Is(err, client.ErrUnavailable), errors.Is(err, client.ErrClosed), ctx.Err() != nil:
		return 0, err
	case err != nil: // unknown, or published by a manager that this client does not understand
		return defaultRetention, nil //nolint:nilerr // the task itself may still be there
	case info.entry.RetentionSeconds <= 0:
		return defaultRetention, nil
	default:
		return time.Duration(info.entry.RetentionSeconds) * time.Second, nil
	}
}
