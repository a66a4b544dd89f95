package direct

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// peekSource says all that is known of one task at one moment.
//
// KEYS[1] the task's record
// KEYS[2] the task's hash
// KEYS[3] scheduled
// KEYS[4] retry
// ARGV[1] the task's key
// ARGV[2] "1" to have the message of a dead letter as well: its record has no payload
//
// Returns an empty list when there is no such task; the record when it has ended, and behind it the message of a dead letter that was
// asked for, empty where there is none; otherwise the fields
// msg, state, pending_since, failures, kills, interruptions, losses, end and result of its hash, nil where there is
// none, the Unix second at which it is due, the history and the progress.
const peekSource = `
local record = redis.call('GET', KEYS[1])
if record then
	local letter = false
	if ARGV[2] == '1' then
		local left = redis.call('HMGET', KEYS[2], 'msg', 'state')
		letter = left[2] == 'archived' and left[1]
	end
	return {record, letter or ''}
end
local seen = redis.call('HMGET', KEYS[2], 'msg', 'state', 'pending_since', '` + task.FieldFailures + `', '` +
	task.FieldKills + `', '` + task.FieldInterruptions + `', '` + task.FieldLosses + `', '` + task.FieldEnd + `', 'result')
if not seen[1] or not seen[2] then
	return {}
end
seen[10] = false
if seen[2] == 'scheduled' then
	seen[10] = redis.call('ZSCORE', KEYS[3], ARGV[1])
elseif seen[2] == 'retry' then
	seen[10] = redis.call('ZSCORE', KEYS[4], ARGV[1])
end
local more = redis.call('HMGET', KEYS[2], '` + task.FieldHistory + `', '` + task.FieldProgress + `')
seen[11], seen[12] = more[1], more[2]
return seen
`

// peekFields is the length of peekSource's answer for a task that has no record.
const peekFields = 12

// endedFields is its length for one that has.
const endedFields = 2

// detail says how much of a task that has ended is wanted, as peekSource is told.
type detail string

const (
	recordOnly  detail = ""
	withPayload detail = "1"
)

// sight is what peekSource saw of one task.
type sight struct {
	task  *task.Task // nil when there is no such task
	asynq string     // the state in asynq's words; empty when there is a record or nothing
	// life tells one life of a task from the next of the same ID: the time of its submit. 0 for tasks of foreign clients.
	life int64
}

// Get implements client.Client. The payload is there as long as the task lies in its queue, dead letters included.
func (c *Client) Get(ctx context.Context, id task.ID) (*task.Task, error) {
	seen, err := c.peek(ctx, id, withPayload)
	if err != nil {
		return nil, fmt.Errorf("look at task %s: %w", id, err)
	}
	if seen.task == nil {
		return nil, fmt.Errorf("look at task %s: %w: it was never submitted, or its record has expired", id, client.ErrUnknownTask)
	}
	return seen.task, nil
}

// sound reports whether an ID may stand in Redis at all.
func sound(id task.ID) bool {
	parsed, err := task.ParseID(id.String())
	return err == nil && parsed == id
}

func (c *Client) peek(ctx context.Context, id task.ID, how detail) (sight, error) {
	if !sound(id) {
		return sight{}, nil
	}
	seen, err := c.peekAll(ctx, []task.ID{id}, how)
	if err != nil {
		return sight{}, err
	}
	return seen[0], nil
}

// peekAll looks at some tasks in one round trip, each at one moment.
func (c *Client) peekAll(ctx context.Context, ids []task.ID, how detail) ([]sight, error) {
	calls := make([]call, len(ids))
	for i, id := range ids {
		keys := task.KeysOf(id.Queue)
		calls[i] = call{keys: []string{keys.Record(id.Key), keys.Task(id.Key), keys.Scheduled(), keys.Retry()}, args: []any{id.Key, string(how)}}
	}
	answers, err := ask(ctx, c, func(ctx context.Context) ([]*redis.Cmd, error) {
		answers := runAll(ctx, c.rdb, c.scripts.peek, calls)
		return answers, firstError(answers)
	})
	if err != nil {
		return nil, err
	}
	seen := make([]sight, len(ids))
	for i, answer := range answers {
		values, _ := answer.Val().([]any)
		seen[i] = see(ids[i], values)
		if seen[i].task == nil && len(values) > 0 {
			c.log.Warn("what lies in Redis for a task cannot be read; it is treated as unknown", "task", ids[i])
		}
	}
	return seen, nil
}

// see reads the answer of peekSource.
func see(id task.ID, values []any) sight {
	switch len(values) {
	case endedFields:
		t, err := task.DecodeRecord([]byte(text(values[0])))
		if err != nil {
			return sight{}
		}
		t.ID = id
		if letter := text(values[1]); letter != "" {
			if message, err := task.DecodeMessage([]byte(letter)); err == nil && json.Valid(message.Payload) { // else of a foreign client
				t.Payload = message.Payload
			}
		}
		return sight{task: t}
	case peekFields:
		t, message, err := stored(values).Read(id)
		if err != nil {
			return sight{}
		}
		seen := sight{asynq: text(values[1]), task: t}
		if at := message.Submitted(); !at.IsZero() {
			seen.life = at.UnixMilli()
		}
		return seen
	default:
		return sight{}
	}
}

// stored names the values of peekSource's answer.
func stored(values []any) task.Stored {
	return task.Stored{
		Message: text(values[0]), State: text(values[1]), PendingSince: text(values[2]),
		Failures: text(values[3]), Kills: text(values[4]), Interruptions: text(values[5]), Losses: text(values[6]),
		End: text(values[7]), Result: text(values[8]), Due: text(values[9]), History: text(values[10]), Progress: text(values[11]),
	}
}

func text(value any) string {
	s, _ := value.(string)
	return s
}
