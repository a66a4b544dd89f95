package direct

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// submitScript puts a task into its queue, or finds the one that is already there.
//
// A dead letter, and a task that asynq keeps after its end, make room for the new one, and so does a hash without a
// message, which is only what a late counter left. The record of an earlier end is removed, so that who waits for the
// new task does not get the old result. A submit into an empty queue is announced, so that an idle manager need not
// poll; into a queue with tasks it is not, because whoever works there sees it.
//
// KEYS[1] the task's hash
// KEYS[2] pending
// KEYS[3] scheduled
// KEYS[4] archived
// KEYS[5] completed
// KEYS[6] the task's record
// ARGV[1] the task's key
// ARGV[2] the encoded message
// ARGV[3] now, in Unix nanoseconds
// ARGV[4] when it is due, in Unix seconds; 0 for at once
// ARGV[5] the wake channel
//
// Returns the state, in asynq's words, of the task that was there and is joined; "" when the task is new.
//
//nolint:gochecknoglobals // compiled once; never written
var submitScript = redis.NewScript(`
local found = redis.call('HMGET', KEYS[1], 'state', 'msg')
local state = found[1]
if state and found[2] and state ~= 'archived' and state ~= 'completed' then
	return state
end
if state == 'archived' then
	redis.call('ZREM', KEYS[4], ARGV[1])
elseif state == 'completed' then
	redis.call('ZREM', KEYS[5], ARGV[1])
end
redis.call('DEL', KEYS[1], KEYS[6])
if ARGV[4] ~= '0' then
	redis.call('HSET', KEYS[1], 'msg', ARGV[2], 'state', 'scheduled')
	redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
	return ''
end
redis.call('HSET', KEYS[1], 'msg', ARGV[2], 'state', 'pending', 'pending_since', ARGV[3])
if redis.call('LPUSH', KEYS[2], ARGV[1]) == 1 then
	redis.call('PUBLISH', ARGV[5], ARGV[1])
end
return ''
`)

// Submit implements client.Client. A task that is joined keeps the time at which it is due.
func (c *Client) Submit(ctx context.Context, queue string, payload any, options ...client.Option) (client.Submitted, error) {
	submitted, err := c.submit(ctx, queue, payload, client.Apply(options))
	if err != nil {
		return client.Submitted{}, fmt.Errorf("submit to queue %.80q: %w", queue, err)
	}
	return submitted, nil
}

func (c *Client) submit(ctx context.Context, queue string, payload any, options client.Options) (client.Submitted, error) {
	info, err := c.queue(ctx, queue)
	if err != nil {
		return client.Submitted{}, err
	}
	canonical, err := encode(payload)
	if err == nil {
		err = info.schema.Check(canonical)
	}
	if err != nil {
		return client.Submitted{}, fmt.Errorf("%w: %w", client.ErrInvalidPayload, err)
	}
	id := task.ContentID(queue, info.entry.Kind, canonical)
	if options.NotUnique {
		id = task.RandomID(queue)
	}
	now := time.Now()
	message := task.NewMessage(id, info.entry.Kind, canonical, now).Encode()
	keys := task.KeysOf(queue)
	found, err := ask(ctx, c, func(ctx context.Context) (string, error) {
		return submitScript.Run(ctx, c.rdb,
			[]string{keys.Task(id.Key), keys.Pending(), keys.Scheduled(), keys.Archived(), keys.CompletedSet(), keys.Record(id.Key)},
			id.Key, message, now.UnixNano(), due(now, options.Delay), keys.WakeChannel()).Text()
	})
	if err != nil {
		return client.Submitted{}, err
	}
	if found == "" || options.NotUnique { // a random ID is found only when the command was sent twice
		return client.Submitted{ID: id, State: task.Waiting}, nil
	}
	return client.Submitted{ID: id, Joined: true, State: task.StateOfAsynq(found)}, nil
}

// encode returns the payload in the form that its ID is made from.
func encode(payload any) ([]byte, error) {
	data, err := client.EncodePayload(payload)
	if err != nil {
		return nil, err
	}
	return task.Canonical(data)
}

// due is the Unix second at which a delayed task may run, rounded up so that it never runs early; 0 for no delay.
func due(now time.Time, delay time.Duration) int64 {
	if delay <= 0 {
		return 0
	}
	at := now.Add(delay)
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}
