package main

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

func drainPlain(ctx context.Context, b *bench, tasks int) (time.Duration, error) {
	return drainAsynq(ctx, b, tasks, "tcp", 1)
}

func drainTuned(ctx context.Context, b *bench, tasks int) (time.Duration, error) {
	return drainAsynq(ctx, b, tasks, "unix", lanes)
}

// drainAsynq drains with handlers in this process, which decode the payload as a worker would.
func drainAsynq(ctx context.Context, b *bench, tasks int, network string, servers int) (time.Duration, error) {
	if err := b.fill(ctx, tasks); err != nil {
		return 0, err
	}
	client := b.client(network)
	defer func() { _ = client.Close() }()
	var done atomic.Int64
	finished := make(chan struct{})
	handler := asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		var in struct {
			Data string `json:"data"`
		}
		if err := json.Unmarshal(t.Payload(), &in); err != nil {
			return err
		}
		if done.Add(1) == int64(tasks) {
			close(finished)
		}
		return nil
	})
	began := time.Now()
	for range servers {
		s := asynq.NewServerFromRedisClient(client, asynq.Config{
			Concurrency: concurrency, Queues: map[string]int{kind: 1}, LogLevel: asynq.FatalLevel,
		})
		if err := s.Start(handler); err != nil {
			return 0, err
		}
		defer s.Shutdown()
	}
	select {
	case <-finished:
		return time.Since(began), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
