package standin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/task"
)

// takeSource takes the next task as asynq does, after it has moved the tasks that are due to the queue.
//
// KEYS[1] pending, KEYS[2] active, KEYS[3] lease, KEYS[4] scheduled, KEYS[5] retry
// ARGV[1] prefix of the tasks' hashes, ARGV[2] now in Unix seconds
//
// Returns the message; nil when there is none.
const takeSource = `
for i = 4, 5 do
	for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[i], '-inf', ARGV[2])) do
		redis.call('ZREM', KEYS[i], key)
		redis.call('LPUSH', KEYS[1], key)
		redis.call('HSET', ARGV[1] .. key, 'state', 'pending')
	end
end
local key = redis.call('RPOPLPUSH', KEYS[1], KEYS[2])
if not key then
	return false
end
redis.call('HSET', ARGV[1] .. key, 'state', 'active')
redis.call('HDEL', ARGV[1] .. key, 'pending_since')
redis.call('ZADD', KEYS[3], ARGV[2] + 30, key)
return redis.call('HGET', ARGV[1] .. key, 'msg')
`

// endSource ends an active task as a manager does.
//
// KEYS[1] active, KEYS[2] lease, KEYS[3] the task's hash, KEYS[4] its record
// ARGV[1] the task's key, ARGV[2] the record, ARGV[3] its life in seconds or 0 for none, ARGV[4] the events channel,
// ARGV[5] the events
//
// Returns 1; 0 when the task is not active, because that was done already.
const endSource = `
if redis.call('LREM', KEYS[1], 0, ARGV[1]) == 0 then
	return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('DEL', KEYS[3])
if ARGV[3] ~= '0' then
	redis.call('SET', KEYS[4], ARGV[2], 'EX', ARGV[3])
end
redis.call('PUBLISH', ARGV[4], ARGV[5])
return 1
`

// retrySource gives an active task back to be tried again.
//
// KEYS[1] active, KEYS[2] lease, KEYS[3] the task's hash, KEYS[4] retry
// ARGV[1] the task's key, ARGV[2] the message, ARGV[3] when it is due in Unix seconds, ARGV[4] failures, ARGV[5] kills,
// ARGV[6] the events channel, ARGV[7] the events
const retrySource = `
if redis.call('LREM', KEYS[1], 0, ARGV[1]) == 0 then
	return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[3], 'msg', ARGV[2], 'state', 'retry', '` + task.FieldFailures + `', ARGV[4], '` + task.FieldKills + `', ARGV[5])
redis.call('ZADD', KEYS[4], ARGV[3], ARGV[1])
redis.call('PUBLISH', ARGV[6], ARGV[7])
return 1
`

// giveBackSource puts an active task back at the head of the queue.
//
// KEYS[1] active, KEYS[2] lease, KEYS[3] the task's hash, KEYS[4] pending
// ARGV[1] the task's key
const giveBackSource = `
if redis.call('LREM', KEYS[1], 0, ARGV[1]) == 0 then
	return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[3], 'state', 'pending')
redis.call('RPUSH', KEYS[4], ARGV[1])
return 1
`

// Take takes the next task of the queue; nil when there is none.
func (s *Standin) Take(ctx context.Context) (*task.Message, error) {
	keys := task.KeysOf(s.queue)
	data, err := broker.Script(s.rdb, takeSource).Run(ctx, s.rdb,
		[]string{keys.Pending(), keys.Active(), keys.Lease(), keys.Scheduled(), keys.Retry()}, keys.TaskPrefix(), time.Now().Unix()).Text()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take a task: %w", err)
	}
	return task.DecodeMessage([]byte(data))
}

// progressSource keeps the progress of a running task and publishes it.
//
// KEYS[1] the task's hash
// ARGV[1] channel of events   ARGV[2] encoded event
const progressSource = `
if redis.call('HGET', KEYS[1], 'state') == 'active' then
	redis.call('HSET', KEYS[1], '` + task.FieldProgress + `', ARGV[2])
end
redis.call('PUBLISH', ARGV[1], ARGV[2])
`

// End ends an active task: its record is kept, unless the options say otherwise, and its end is published.
func (s *Standin) End(ctx context.Context, t *task.Task) error {
	if s.options.NoRecords {
		return s.end(ctx, t, 0)
	}
	return s.end(ctx, t, time.Hour)
}

// end ends an active task whose record is kept for a time of its own.
func (s *Standin) end(ctx context.Context, t *task.Task, keep time.Duration) error {
	record, err := task.EncodeRecord(t)
	if err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	event, err := task.EncodeEvents(s.event(t))
	if err != nil {
		return fmt.Errorf("write an end: %w", err)
	}
	keys, key := task.KeysOf(s.queue), t.ID.Key
	err = broker.Script(s.rdb, endSource).Run(ctx, s.rdb, []string{keys.Active(), keys.Lease(), keys.Task(key), keys.Record(key)},
		key, record, int64(keep/time.Second), keys.EventsChannel(), event).Err()
	if err != nil {
		return fmt.Errorf("end task %s: %w", t.ID, err)
	}
	return nil
}

func (s *Standin) retry(ctx context.Context, message *task.Message, t *task.Task) error {
	again := *message
	again.Retried++
	again.ErrorMsg, again.LastFailedAt = t.Fault.Error(), time.Now().Unix()
	event, err := task.EncodeEvents(s.event(t))
	if err != nil {
		return fmt.Errorf("write a failure: %w", err)
	}
	keys, key := task.KeysOf(s.queue), t.ID.Key
	return broker.Script(s.rdb, retrySource).Run(ctx, s.rdb, []string{keys.Active(), keys.Lease(), keys.Task(key), keys.Retry()}, key, again.Encode(),
		time.Now().Unix()+1, t.Counters.Failures, t.Counters.Kills, keys.EventsChannel(), event).Err()
}

func (s *Standin) event(t *task.Task) *task.Event {
	e := &task.Event{ID: t.ID, State: t.State, At: time.Now(), Attempts: t.Attempts}
	if t.Fault != nil {
		e.Fault = t.Fault.Kind
	}
	return e
}
