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
		err = c.submitParcels(ctx, parcels[:n], all)
		parcels = parcels[n:]
	}
	if err == nil {
		return all, nil
	}
	err = fmt.Errorf("submit %d tasks: %w", len(work), err)
	for _, k := range parcels { // they were not sent any more
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

// submitParcels submits parcels in one round trip and writes down at their places what came of them. In a Cluster some may be
// refused, because their node is away, and the others not.
func (c *Client) submitParcels(ctx context.Context, parcels []*parcel, all []client.Batched) (failed error) {
	answers, err := ask(ctx, c, func(ctx context.Context) ([]answered, error) { return c.send(ctx, parcels), nil })
	if err != nil {
		for _, k := range parcels {
			k.refuse(all, err)
		}
		return err
	}
	for n, k := range parcels {
		err := answers[n].err
		if err == nil && len(answers[n].found) != len(k.entries) {
			err = fmt.Errorf("it answered for %d tasks instead of %d", len(answers[n].found), len(k.entries))
		}
		if err != nil {
			err = fmt.Errorf("submit to queue %.80q: %w: %w: %w", k.queue, client.ErrUnavailable, errRedis, err)
			k.refuse(all, err)
			failed = err
			continue
		}
		for m, e := range k.entries {
			all[k.places[m]].Submitted = e.submitted(answers[n].found[m])
		}
	}
	return failed
}

// refuse writes an error down for each task.
func (k *parcel) refuse(all []client.Batched, err error) {
	for _, i := range k.places {
		all[i].Err = err
	}
}

// answered is what Redis said to one parcel.
type answered struct {
	found []string
	err   error
}

// send sends parcels. When replicas are waited for, that is one round trip a queue, as their confirmation is one of a connection.
func (c *Client) send(ctx context.Context, parcels []*parcel) []answered {
	answers := make([]answered, len(parcels))
	some := func(rdb redis.Cmdable, places []int) error {
		calls := make([]call, len(places))
		now := time.Now()
		for n, at := range places {
			calls[n].keys, calls[n].args = submitArgs(parcels[at].queue, now, parcels[at].entries)
		}
		commands := runAll(ctx, rdb, c.scripts.submit, calls)
		for n, at := range places {
			answers[at].found, answers[at].err = commands[n].StringSlice()
		}
		return firstError(commands)
	}
	byQueue := map[string][]int{}
	every := make([]int, len(parcels))
	for n, k := range parcels {
		every[n] = n
		byQueue[k.queue] = append(byQueue[k.queue], n)
	}
	if c.replicas == 0 {
		_ = some(c.rdb, every) // each answer has its error
		return answers
	}
	for queue, places := range byQueue {
		if err := c.replicated(ctx, queue, func(rdb redis.Cmdable) error { return some(rdb, places) }); err != nil {
			for _, at := range places {
				answers[at].err = err
			}
		}
	}
	return answers
}
