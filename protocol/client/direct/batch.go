package direct

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
)

// Bounds of a batch. A script keeps Redis from everything else while it runs, so it takes few tasks; a pipeline carries many
// scripts, and what of it is not read yet lies in memory.
const (
	perScript     = 128
	scriptBytes   = 1 << 20
	perPipeline   = 32
	pipelineBytes = 8 << 20
)

// parcel is what one script submits: tasks of one queue, and their places in the batch.
type parcel struct {
	queue   string
	entries []*entry
	places  []int
	bytes   int
}

// SubmitBatch implements client.Client.
func (c *Client) SubmitBatch(ctx context.Context, work []client.Work) ([]client.Batched, error) {
	all := make([]client.Batched, len(work))
	parcels, err := c.parcels(ctx, work, all)
	for err == nil && len(parcels) > 0 {
		n, bytes := 0, 0
		for n < min(len(parcels), perPipeline) && (n == 0 || bytes+parcels[n].bytes <= pipelineBytes) {
			bytes += parcels[n].bytes
			n++
		}
		if err = c.submitParcels(ctx, parcels[:n], all); err == nil {
			parcels = parcels[n:]
		}
	}
	if err == nil {
		return all, nil
	}
	err = fmt.Errorf("submit %d tasks: %w", len(work), err)
	for _, k := range parcels {
		for _, i := range k.places {
			all[i].Err = err
		}
	}
	return all, err
}

// parcels checks every task and deals the sound ones into parcels, in their order within each queue. What is wrong with a task
// or its queue is written down at its place. The error is that of a connection that ended meanwhile.
func (c *Client) parcels(ctx context.Context, work []client.Work, all []client.Batched) ([]*parcel, error) {
	var parcels []*parcel
	open := map[string]*parcel{}
	queues := c.resolve(ctx, work)
	now := time.Now()
	for i, w := range work {
		q := queues[w.Queue]
		err := q.err
		var e *entry
		if err == nil {
			e, err = newEntry(q.info, w.Queue, w.Payload, client.Apply(w.Options), now)
		}
		if err != nil {
			all[i].Err = fmt.Errorf("submit to queue %.80q: %w", w.Queue, err)
			continue
		}
		k := open[w.Queue]
		if k == nil || len(k.entries) == perScript || k.bytes > scriptBytes {
			k = &parcel{queue: w.Queue}
			open[w.Queue] = k
			parcels = append(parcels, k)
		}
		k.entries, k.places, k.bytes = append(k.entries, e), append(k.places, i), k.bytes+len(e.message)
	}
	for _, q := range queues {
		if q.lost {
			return parcels, q.err
		}
	}
	return parcels, nil
}

// resolved is what is known of a queue of a batch.
type resolved struct {
	info *queueInfo
	err  error
	lost bool // the error is one of the connection
}

// resolve asks once for each queue of a batch, and for none any more once the connection is lost.
func (c *Client) resolve(ctx context.Context, work []client.Work) map[string]resolved {
	queues := map[string]resolved{}
	var lost error
	for _, w := range work {
		if _, known := queues[w.Queue]; known {
			continue
		}
		if lost != nil {
			queues[w.Queue] = resolved{err: lost, lost: true}
			continue
		}
		info, err := c.queue(ctx, w.Queue)
		r := resolved{info: info, err: err, lost: err != nil && c.disconnected(ctx, err)}
		if r.lost {
			lost = err
		}
		queues[w.Queue] = r
	}
	return queues
}

// disconnected reports whether an error says that nothing can be asked any more.
func (c *Client) disconnected(ctx context.Context, err error) bool {
	return ctx.Err() != nil || c.isClosed() || errors.Is(err, errRedis)
}

// submitParcels submits parcels in one round trip.
func (c *Client) submitParcels(ctx context.Context, parcels []*parcel, all []client.Batched) error {
	answers, err := ask(ctx, c, func(ctx context.Context) ([][]string, error) {
		answers, err := c.submitPipe(ctx, parcels, func(pipe redis.Pipeliner, keys []string, args []any) *redis.Cmd {
			return pipe.EvalSha(ctx, submitScript.Hash(), keys, args...)
		})
		if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			answers, err = c.submitPipe(ctx, parcels, func(pipe redis.Pipeliner, keys []string, args []any) *redis.Cmd {
				return submitScript.Eval(ctx, pipe, keys, args...)
			})
		}
		return answers, err
	})
	if err != nil {
		return err
	}
	for n, k := range parcels {
		if len(answers[n]) != len(k.entries) {
			return fmt.Errorf("%w: Redis answered for %d tasks instead of %d", client.ErrUnavailable, len(answers[n]), len(k.entries))
		}
		for m, e := range k.entries {
			all[k.places[m]].Submitted = e.submitted(answers[n][m])
		}
	}
	return nil
}

func (c *Client) submitPipe(ctx context.Context, parcels []*parcel, run func(redis.Pipeliner, []string, []any) *redis.Cmd) ([][]string, error) {
	commands := make([]*redis.Cmd, len(parcels))
	now := time.Now()
	_, err := c.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for n, k := range parcels {
			keys, args := submitArgs(k.queue, now, k.entries)
			commands[n] = run(pipe, keys, args)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	answers := make([][]string, len(parcels))
	for n, command := range commands {
		if answers[n], err = command.StringSlice(); err != nil {
			return nil, err
		}
	}
	return answers, nil
}
