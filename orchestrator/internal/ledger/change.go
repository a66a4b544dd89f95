package ledger

import (
	"context"
	"crypto/sha1" //nolint:gosec // it only tells one message from another, as Redis can
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	// MaxIDs is how many tasks one change may name.
	MaxIDs = 10_000
	// changeBatch is how many tasks one script changes at most.
	changeBatch = 50
	// maxMoves is how often a task is looked at again because it moved meanwhile.
	maxMoves = 10
)

// Change is what became of one task.
type Change struct {
	ID    task.ID
	State task.State // afterwards
	// Refused is why nothing was changed; empty when it was.
	Refused string
}

// Retry puts dead letters back at the tail of their queue, with fresh counters and their history, and failed tasks at its
// head. A dead letter whose deadline has passed, an expired one above all, has none from then on. It returns one change for each task that was named, in that order, each once; all of one queue.
func (l *Ledger) Retry(ctx context.Context, queue string, keys []string) ([]Change, error) {
	return l.changeAll(ctx, queue, keys, l.retryBatch)
}

// Drop takes tasks that no manager has out of their queue, as Retry does it. Of each there is a terminal record.
func (l *Ledger) Drop(ctx context.Context, queue string, keys []string) ([]Change, error) {
	return l.changeAll(ctx, queue, keys, l.dropBatch)
}

// RetryDead puts dead letters of a queue back that fit a filter. Letters that die while it runs, or after its first part began, are
// left. Beside an error stands how far it came.
func (l *Ledger) RetryDead(ctx context.Context, s Selection) (Part, error) {
	return l.changeDead(ctx, s, l.retryBatch)
}

// DropDead drops dead letters of a queue, as RetryDead puts them back.
func (l *Ledger) DropDead(ctx context.Context, s Selection) (Part, error) {
	return l.changeDead(ctx, s, l.dropBatch)
}

// move changes tasks that were just seen, in one script, and returns what became of each; an empty change for one that has moved.
type move func(ctx context.Context, queue string, seen []sighting) ([]Change, error)

func (l *Ledger) changeAll(ctx context.Context, queue string, keys []string, how move) ([]Change, error) {
	if len(keys) > MaxIDs {
		return nil, invalid("ids: %d tasks are more than the %d that may be changed at once", len(keys), MaxIDs)
	}
	changes := make([]Change, 0, len(keys))
	told := make(map[string]bool, len(keys))
	unique := make([]string, 0, len(keys))
	for _, key := range keys {
		if !told[key] {
			told[key] = true
			unique = append(unique, key)
		}
	}
	for len(unique) > 0 {
		part := unique[:min(changeBatch, len(unique))]
		unique = unique[len(part):]
		done, err := l.changePart(ctx, queue, part, how)
		if err != nil {
			return changes, fmt.Errorf("after %d tasks of queue %s: %w", len(changes), queue, err)
		}
		changes = append(changes, done...)
	}
	return changes, nil
}

// changePart changes some tasks, and looks again at those that moved meanwhile.
func (l *Ledger) changePart(ctx context.Context, queue string, keys []string, how move) ([]Change, error) {
	changes := make(map[string]Change, len(keys))
	left := keys
	for range maxMoves {
		seen, err := l.see(ctx, queue, left)
		if err != nil {
			return nil, err
		}
		done, err := how(ctx, queue, seen)
		if err != nil {
			return nil, err
		}
		var again []string
		for i, c := range done {
			if c.ID.IsZero() {
				again = append(again, left[i])
				continue
			}
			changes[left[i]] = c
		}
		if left = again; len(left) == 0 {
			break
		}
	}
	ordered := make([]Change, 0, len(keys))
	for _, key := range keys {
		c, ok := changes[key]
		if !ok {
			c = Change{ID: task.ID{Queue: queue, Key: key}, Refused: "it moves all the time; try again"}
		}
		ordered = append(ordered, c)
	}
	return ordered, nil
}

// see looks at tasks by their keys.
func (l *Ledger) see(ctx context.Context, queue string, keys []string) ([]sighting, error) {
	names := task.KeysOf(queue)
	hashes := make([]*redis.SliceCmd, len(keys))
	records := make([]*redis.StringCmd, len(keys))
	_, err := ask(ctx, l, func(ctx context.Context) ([]redis.Cmder, error) {
		return l.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, key := range keys {
				hashes[i] = pipe.HMGet(ctx, names.Task(key), "msg", "state", "pending_since", task.FieldFailures, task.FieldKills,
					task.FieldInterruptions, task.FieldLosses, task.FieldEnd, task.FieldHistory)
				records[i] = pipe.Get(ctx, names.Record(key))
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	seen := make([]sighting, len(keys))
	for i, key := range keys {
		seen[i] = sighting{id: task.ID{Queue: queue, Key: key}, key: key}
		const fields = 9
		if v := hashes[i].Val(); len(v) == fields {
			seen[i].stored = task.Stored{
				Message: text(v[0]), State: text(v[1]), PendingSince: text(v[2]), Failures: text(v[3]), Kills: text(v[4]),
				Interruptions: text(v[5]), Losses: text(v[6]), End: text(v[7]), History: text(v[8]),
			}
		}
		if seen[i].stored.State != "" {
			continue
		}
		if t, err := task.DecodeRecord([]byte(records[i].Val())); err == nil {
			seen[i].stored.End = t.State.String()
		}
	}
	return seen, nil
}

// gone is why a task without a hash cannot be changed.
func gone(s sighting) Change {
	c := Change{ID: s.id, Refused: "there is no such task: it was never submitted, or its record has expired"}
	if end, err := task.ParseState(s.stored.End); err == nil {
		c.State, c.Refused = end, fmt.Sprintf("it has ended as %s and is not in its queue any more", end)
	}
	return c
}

func refuse(s sighting, why string) Change {
	if s.stored.State == "" {
		return gone(s)
	}
	c := Change{ID: s.id, State: task.StateOfAsynq(s.stored.State), Refused: why}
	if end, err := task.ParseState(s.stored.End); err == nil && s.stored.State == task.AsynqArchived {
		c.State = end
	}
	return c
}

// run runs a script for those of seen that were sent, and fills in what became of them.
func (l *Ledger) run(ctx context.Context, script *redis.Script, keys []string, args []any, seen []sighting, sent []int, changes []Change, after task.State) ([]Change, error) {
	if len(sent) == 0 {
		return changes, nil
	}
	results, err := ask(ctx, l, func(ctx context.Context) ([]int64, error) {
		return script.Run(ctx, l.Redis, keys, args...).Int64Slice()
	})
	if err != nil {
		return nil, err
	}
	if len(results) != len(sent) {
		return nil, fmt.Errorf("%w: the answer of Redis is not understood", client.ErrUnavailable)
	}
	for n, i := range sent {
		if results[n] == 1 {
			changes[i] = Change{ID: seen[i].id, State: after}
		}
	}
	return changes, nil
}

// sum is what a script tells one message from another by.
func sum(message string) string {
	h := sha1.Sum([]byte(message)) //nolint:gosec // see the import
	return hex.EncodeToString(h[:])
}
