package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/schema"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	// entryLife is how long what managers say of a queue is believed without asking again.
	entryLife = 5 * time.Second
	// maxNamed bounds the queues that an error names.
	maxNamed = 50
)

// queueInfo is what a client must know of a queue to submit to it.
type queueInfo struct {
	entry  task.Entry
	schema *schema.Schema
	read   time.Time
}

// entries remembers what managers have published of the queues.
type entries struct {
	mu    sync.Mutex
	known map[string]*queueInfo
}

func (e *entries) get(queue string) *queueInfo {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known[queue]
}

func (e *entries) put(queue string, info *queueInfo) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known[queue] = info
}

// queue returns what is known of a queue, at most entryLife old. Errors: ErrUnknownQueue, and those of ask.
func (c *Client) queue(ctx context.Context, name string) (*queueInfo, error) {
	if err := task.CheckName(name); err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrUnknownQueue, err)
	}
	old := c.queues.get(name)
	if old != nil && time.Since(old.read) < entryLife {
		return old, nil
	}
	read := time.Now()
	data, err := ask(ctx, c, func(ctx context.Context) ([]byte, error) { return c.readEntry(ctx, name) })
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, fmt.Errorf("%w: no manager has ever served %q%s", client.ErrUnknownQueue, name, c.knownQueues(ctx))
	}
	entry, err := task.DecodeEntry(data)
	if err != nil {
		return nil, err
	}
	if entry.Kind == "" {
		return nil, fmt.Errorf("%w: queue %q takes no tasks until its plugin has started once; `drover plugins` shows what keeps it", client.ErrUnavailable, name)
	}
	info := &queueInfo{entry: entry, read: read}
	if old != nil && old.entry.Schema == entry.Schema {
		info.schema = old.schema
	} else if info.schema, err = schema.Parse(entry.Schema); err != nil {
		return nil, fmt.Errorf("queue %q: %w", name, err)
	}
	c.queues.put(name, info)
	return info, nil
}

// readEntry returns the entry of a queue, nil when there is none. It also puts the queue among those that asynq's own
// tools look at: here rather than at each submit, and again each time, should Redis have lost it meanwhile.
func (c *Client) readEntry(ctx context.Context, queue string) ([]byte, error) {
	data, err := c.rdb.Get(ctx, task.KeysOf(queue).Entry()).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return data, c.rdb.SAdd(ctx, task.AsynqQueuesKey, queue).Err()
}

// knownQueues completes an error: ", it knows a, b"; nothing when that cannot be told.
func (c *Client) knownQueues(ctx context.Context) string {
	names, err := ask(ctx, c, func(ctx context.Context) ([]string, error) {
		names, err := c.rdb.SMembers(ctx, task.AsynqQueuesKey).Result()
		if err != nil {
			return nil, err
		}
		slices.Sort(names)
		names = names[:min(len(names), maxNamed)]
		served := make([]*redis.IntCmd, len(names))
		_, err = c.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, name := range names {
				served[i] = pipe.Exists(ctx, task.KeysOf(name).Entry())
			}
			return nil
		})
		var known []string
		for i, name := range names {
			if served[i].Val() > 0 {
				known = append(known, name)
			}
		}
		return known, err
	})
	switch {
	case err != nil:
		return ""
	case len(names) == 0:
		return ", and none has published a queue so far: start one"
	default:
		return ", there are: " + strings.Join(names, ", ")
	}
}
