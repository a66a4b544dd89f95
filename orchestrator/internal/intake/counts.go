package intake

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Counts are a queue's tasks in Redis, over all managers.
type Counts struct {
	Waiting, Active, Scheduled, Retry, Dead int64
	Paused                                  bool
}

// Counts reads the counts of all queues in one round trip.
func (in *Intake) Counts(ctx context.Context) (map[string]Counts, error) {
	type replies struct {
		waiting, active, scheduled, retry, dead, paused *redis.IntCmd
	}
	lanes := in.all()
	byQueue := make(map[string]replies, len(lanes))
	_, err := in.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, l := range lanes {
			byQueue[l.Queue] = replies{
				waiting: pipe.LLen(ctx, l.keys.Pending()), active: pipe.LLen(ctx, l.keys.Active()),
				scheduled: pipe.ZCard(ctx, l.keys.Scheduled()), retry: pipe.ZCard(ctx, l.keys.Retry()),
				dead: pipe.ZCard(ctx, l.keys.Archived()), paused: pipe.Exists(ctx, l.keys.Paused()),
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count the tasks in Redis: %w", err)
	}
	counts := make(map[string]Counts, len(byQueue))
	for name, r := range byQueue {
		counts[name] = Counts{
			Waiting: r.waiting.Val(), Active: r.active.Val(), Scheduled: r.scheduled.Val(),
			Retry: r.retry.Val(), Dead: r.dead.Val(), Paused: r.paused.Val() > 0,
		}
	}
	return counts, nil
}
