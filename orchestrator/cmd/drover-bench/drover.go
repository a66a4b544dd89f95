package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator"
	"github.com/drover-jobs/drover/protocol/task"
)

func drainDrover(ctx context.Context, b *bench, tasks int) (time.Duration, error) {
	return drainManager(ctx, b, tasks, "1h")
}

func drainBare(ctx context.Context, b *bench, tasks int) (time.Duration, error) {
	return drainManager(ctx, b, tasks, "off")
}

// drainManager drains through a manager of four worker processes that are ready when the time begins.
func drainManager(ctx context.Context, b *bench, tasks int, retention string) (took time.Duration, err error) {
	if err := b.fill(ctx, tasks); err != nil {
		return 0, err
	}
	if err := b.admin.Set(ctx, task.KeysOf(kind).Paused(), 1, 0).Err(); err != nil {
		return 0, err
	}
	queues := fmt.Sprintf("noop: {plugin: noop, min_workers: %d, max_workers: %d, slots: %d, buffer: 128, retention: %s}", workers, workers, slots, retention)
	err = b.withManager(ctx, queues, func(ctx context.Context) error {
		began := time.Now()
		if err := b.resume(ctx, tasks); err != nil {
			return err
		}
		took = time.Since(began)
		return nil
	})
	return took, err
}

// resume lets a manager work at the paused queue until asynq's own count says that so many tasks were processed in all.
func (b *bench) resume(ctx context.Context, processed int) error {
	keys := task.KeysOf(kind)
	if err := b.admin.Del(ctx, keys.Paused()).Err(); err != nil {
		return err
	}
	if err := b.admin.Publish(ctx, keys.WakeChannel(), "").Err(); err != nil {
		return err
	}
	return b.processed(ctx, keys, processed)
}

// apiSocket is where the manager of withManager serves its API.
func (b *bench) apiSocket() string { return filepath.Join(b.dir, "state", "drover.sock") }

// withManager runs a manager in this process with these queues, in YAML, and calls do when its workers are ready.
func (b *bench) withManager(ctx context.Context, queues string, do func(context.Context) error) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	config, err := orchestrator.Parse("bench.yaml", fmt.Appendf(nil, `
manager: {name: bench, state_dir: %q}
redis: {address: %q}
api: {rate: off}
plugins: {noop: {command: [%q, worker]}}
queues: {%s}
`, filepath.Join(b.dir, "state"), "unix://"+b.socket(), self, queues))
	if err != nil {
		return err
	}
	o := orchestrator.New(config, "bench", slog.New(slog.DiscardHandler))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := o.Run(running)
		ended <- err
	}()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	select {
	case <-o.Up():
	case err := <-ended:
		ended <- nil
		return err
	}
	if err := b.workersUp(ctx); err != nil {
		return err
	}
	return do(ctx)
}

// look is how often the benchmark looks whether it is done.
const look = 2 * time.Millisecond

// workersUp waits until the manager has had time to start its workers.
func (b *bench) workersUp(ctx context.Context) error {
	const settle = 500 * time.Millisecond
	select {
	case <-time.After(settle):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// processed waits until asynq's own count says that n tasks were processed.
func (b *bench) processed(ctx context.Context, keys task.Keys, n int) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		text, err := b.admin.Get(ctx, keys.Processed()).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if done, _ := strconv.Atoi(text); done >= n {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
