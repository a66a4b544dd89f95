package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/actor"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/judge"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/ledger"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// listen counts the ends that are published, until ctx ends. It returns when the subscription stands.
func (r *run) listen(ctx context.Context, background *sync.WaitGroup) error {
	channels := make([]string, 0, len(r.plan.Queues))
	for _, q := range r.plan.Queues {
		channels = append(channels, task.KeysOf(q.Name).EventsChannel())
	}
	events := r.rdb.Subscribe(ctx, channels...)
	if _, err := events.Receive(ctx); err != nil {
		return errors.Join(fmt.Errorf("subscribe to events: %w", err), events.Close())
	}
	const room = 4096
	messages := events.Channel(redis.WithChannelSize(room), redis.WithChannelHealthCheckInterval(time.Second))
	background.Go(func() {
		defer func() { _ = events.Close() }()
		for {
			select {
			case <-ctx.Done():
				return
			case m := <-messages:
				if m != nil {
					r.heard(m.Payload)
				}
			}
		}
	})
	return nil
}

func (r *run) heard(payload string) {
	events, err := task.DecodeEvents([]byte(payload))
	r.problem(err)
	for _, e := range events {
		if e.State.Ended() {
			r.note(func(f *judge.Facts) { f.Ends[e.ID]++ })
		}
	}
}

// gather collects what is left to know once every manager has stopped.
func (r *run) gather(ctx context.Context) error {
	if !r.redis.Alive() {
		r.note(func(f *judge.Facts) { f.Crashes = append(f.Crashes, "redis-server ended by itself") })
		return nil
	}
	r.facts.Processes = append(actor.Having("MISBEHAVE_LEDGER="+r.ledgerPath()), actor.Having("TMPDIR="+r.dir+"/")...)
	for _, m := range r.managers {
		dirs, err := filepath.Glob(filepath.Join(m.Temp(), "drover-sockets-*"))
		if err != nil {
			return fmt.Errorf("look for directories of sockets: %w", err)
		}
		r.facts.Dirs = append(r.facts.Dirs, dirs...)
	}
	for _, s := range r.facts.Submissions {
		record, err := r.tasks.Get(ctx, s.ID)
		switch {
		case errors.Is(err, client.ErrUnknownTask):
		case err != nil:
			return fmt.Errorf("read the record of %s: %w", s.ID, err)
		default:
			r.facts.Records[s.ID] = record
		}
	}
	for _, q := range r.plan.Queues {
		n, err := r.numbers(ctx, q.Name)
		if err != nil {
			return fmt.Errorf("read the numbers of queue %s: %w", q.Name, err)
		}
		r.facts.Numbers[q.Name] = n
	}
	if err := r.locksLeft(ctx); err != nil {
		return err
	}
	return r.readLedger()
}

// leaseEnds is after how long the lock of a manager that was killed is gone by itself, memcached's whole seconds included.
const leaseEnds = 10 * time.Second

// locksLeft looks for locks in both places. Those of managers that were killed at the end get their time.
func (r *run) locksLeft(ctx context.Context) error {
	if err := actor.Rest(ctx, time.Until(r.calm.Add(leaseEnds))); err != nil {
		return err
	}
	locks := r.rdb.Scan(ctx, 0, "drover:lock:*", 1000).Iterator()
	for locks.Next(ctx) {
		r.facts.Locks = append(r.facts.Locks, locks.Val())
	}
	if err := locks.Err(); err != nil {
		return fmt.Errorf("look for locks in Redis: %w", err)
	}
	if r.cache == nil {
		return nil
	}
	if !r.cache.Alive() {
		r.note(func(f *judge.Facts) { f.Crashes = append(f.Crashes, "memcached ended by itself") })
		return nil
	}
	items, err := r.cache.Items(ctx, "drover:lock:")
	r.facts.Locks = append(r.facts.Locks, items...)
	return err
}

func (r *run) readLedger() error {
	file, err := os.Open(r.ledgerPath())
	if err != nil {
		return fmt.Errorf("open the ledger: %w", err)
	}
	defer func() { _ = file.Close() }()
	r.facts.Runs, err = ledger.Read(file)
	return err
}

// numbers asks Redis itself.
func (r *run) numbers(ctx context.Context, queue string) (judge.Numbers, error) {
	keys := task.KeysOf(queue)
	pipe := r.rdb.Pipeline()
	pending, active := pipe.LLen(ctx, keys.Pending()), pipe.LLen(ctx, keys.Active())
	sets := make([]*redis.IntCmd, 0, 4)
	for _, key := range []string{keys.Lease(), keys.Scheduled(), keys.Retry(), keys.Archived()} {
		sets = append(sets, pipe.ZCard(ctx, key))
	}
	processed, failed := pipe.Get(ctx, keys.Processed()), pipe.Get(ctx, keys.FailedRuns())
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return judge.Numbers{}, err
	}
	n := judge.Numbers{
		Pending: pending.Val(), Active: active.Val(), Lease: sets[0].Val(), Scheduled: sets[1].Val(), Retry: sets[2].Val(), Archived: sets[3].Val(),
	}
	n.Processed, _ = processed.Int64() // 0 when nothing was
	n.Failed, _ = failed.Int64()
	records := r.rdb.Scan(ctx, 0, keys.Record("*"), 1000).Iterator()
	for records.Next(ctx) {
		n.Records++
	}
	return n, records.Err()
}
