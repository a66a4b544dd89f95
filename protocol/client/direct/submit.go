package direct

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// submitLua is the function submit(first), which puts tasks into their queue, or finds those that are already there. Its keys and
// arguments are those of submitSource, the arguments from first on; scripts that decide first whether to submit have it too.
//
// A dead letter, and a task that asynq keeps after its end, make room for the new one, and so does a hash without a
// message, which is only what a late counter left. The record of an earlier end is removed, so that who waits for the
// new task does not get the old result. A submit into an empty queue is announced, so that an idle manager need not
// poll; into a queue with tasks it is not, because whoever works there sees it.
//
// KEYS[1] pending   KEYS[2] scheduled   KEYS[3] archived   KEYS[4] completed
// ARGV[1] what the key of a task's hash begins with
// ARGV[2] what the key of a record begins with
// ARGV[3] now, in Unix nanoseconds
// ARGV[4] the wake channel
// then for each task:
//
//	its key
//	the encoded message
//	when it is due, in Unix seconds; 0 for at once
//	"1" for the head of the queue
//
// Returns for each task the state, in asynq's words, of the one that was there and is joined; "" when the task is new.
//
//nolint:gosec // no secret
const submitLua = `
local function lives(prefix, key)
	local found = redis.call('HMGET', prefix .. key, 'state', 'msg')
	return found[1] and found[2] and found[1] ~= 'archived' and found[1] ~= 'completed', found[1]
end
local function submit(first)
	local joined, wake, prefix = {}, nil, ARGV[first]
	for i = first + 4, #ARGV, 4 do
		local key = ARGV[i]
		local there, state = lives(prefix, key)
		if there then
			joined[#joined + 1] = state
		else
			if state == 'archived' then
				redis.call('ZREM', KEYS[3], key)
			elseif state == 'completed' then
				redis.call('ZREM', KEYS[4], key)
			end
			redis.call('DEL', prefix .. key, ARGV[first + 1] .. key)
			if ARGV[i + 2] ~= '0' then
				redis.call('HSET', prefix .. key, 'msg', ARGV[i + 1], 'state', 'scheduled')
				redis.call('ZADD', KEYS[2], ARGV[i + 2], key)
			else
				redis.call('HSET', prefix .. key, 'msg', ARGV[i + 1], 'state', 'pending', 'pending_since', ARGV[first + 2])
				local push = ARGV[i + 3] == '1' and 'RPUSH' or 'LPUSH'
				if redis.call(push, KEYS[1], key) == 1 then
					wake = key
				end
			end
			joined[#joined + 1] = ''
		end
	end
	if wake then
		redis.call('PUBLISH', ARGV[first + 3], wake)
	end
	return joined
end
`

// submitSource submits.
const submitSource = submitLua + "return submit(1)\n"

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
	e, err := newEntry(info, queue, payload, options, time.Now())
	if err != nil {
		return client.Submitted{}, err
	}
	found, err := ask(ctx, c, func(ctx context.Context) (found []string, err error) {
		keys, args := submitArgs(queue, time.Now(), []*entry{e})
		err = c.replicated(ctx, queue, func(rdb redis.Cmdable) error {
			found, err = c.scripts.submit.Run(ctx, rdb, keys, args...).StringSlice()
			return err
		})
		return found, err
	})
	switch {
	case err != nil:
		return client.Submitted{}, err
	case len(found) != 1:
		return client.Submitted{}, fmt.Errorf("%w: Redis answered for %d tasks", client.ErrUnavailable, len(found))
	}
	return e.submitted(found[0]), nil
}

// entry is a task that is about to be submitted.
type entry struct {
	id      task.ID
	message []byte
	due     int64 // Unix second; 0 for at once
	random  bool  // its ID is
	urgent  bool
}

// newEntry checks a payload and makes the task.
func newEntry(info *queueInfo, queue string, payload any, o client.Options, now time.Time) (*entry, error) {
	canonical, err := info.canonical(payload)
	if err != nil {
		return nil, err
	}
	id := task.ContentID(queue, info.entry.Kind, canonical)
	if o.NotUnique {
		id = task.RandomID(queue)
	}
	return newEntryOf(info, id, canonical, o, now), nil
}

// newEntryOf makes the task of an ID; its payload is canonical and sound.
func newEntryOf(info *queueInfo, id task.ID, canonical []byte, o client.Options, now time.Time) *entry {
	e := &entry{id: id, due: due(now, o.Delay), random: o.NotUnique, urgent: o.Urgent}
	m := task.NewMessage(e.id, info.entry.Kind, canonical, now)
	if !o.Deadline.IsZero() {
		m.Deadline = o.Deadline.Add(time.Second - 1).Unix()
	}
	if o.Retention != nil {
		m.KeepRecord(*o.Retention)
	}
	e.message = m.Encode()
	return e
}

// canonical checks a payload against the queue's schema and returns it in the form that its ID is made from. Errors:
// ErrInvalidPayload.
func (i *queueInfo) canonical(payload any) ([]byte, error) {
	canonical, err := encode(payload)
	if err == nil {
		err = i.schema.Check(canonical)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrInvalidPayload, err)
	}
	return canonical, nil
}

// submitArgs are the keys and arguments of submitSource.
func submitArgs(queue string, now time.Time, entries []*entry) (keys []string, args []any) {
	const fixed, perTask = 4, 4
	names := task.KeysOf(queue)
	args = make([]any, 0, fixed+perTask*len(entries))
	args = append(args, names.TaskPrefix(), names.Record(""), now.UnixNano(), names.WakeChannel())
	for _, e := range entries {
		urgent := ""
		if e.urgent {
			urgent = "1"
		}
		args = append(args, e.id.Key, e.message, e.due, urgent)
	}
	return []string{names.Pending(), names.Scheduled(), names.Archived(), names.CompletedSet()}, args
}

// submitted reads the script's answer for one task.
func (e *entry) submitted(found string) client.Submitted {
	if found == "" || e.random { // a random ID is found only when the command was sent twice
		return client.Submitted{ID: e.id, State: task.Waiting}
	}
	return client.Submitted{ID: e.id, Joined: true, State: task.StateOfAsynq(found)}
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
