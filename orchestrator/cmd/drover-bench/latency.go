package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
)

// What is wanted of an idle system: from submit to the result at the client, and what ten idle queues cost of a core.
const (
	wantMedian       = 5 * time.Millisecond
	wantSlowest      = 20 * time.Millisecond // of a hundred
	wantManager      = 0.02
	wantRedis        = 0.01
	idleQueues       = 10
	idleFor          = 5 * time.Second
	latencyTasks     = 120
	latencyDefault   = 12 // with asynq's default, of which each takes the better part of a second
	pauseLeast       = 20 * time.Millisecond
	pauseSpread      = 60 * time.Millisecond
	warmUp           = 5
	asynqFast        = 20 * time.Millisecond
	idleBeforeFirst  = 3 * time.Second // after which a fast lane has ended
	percentileOfMost = 0.99
)

// idle is what a set-up shows when one task comes now and then.
type idle struct {
	name           string
	took           []time.Duration
	manager, redis float64 // of a core, while nothing happens
}

// measureLatency measures it, side by side with asynq.
func measureLatency(ctx context.Context, out io.Writer, b *bench) error {
	var all []idle
	var queues []string
	for i := range idleQueues {
		queues = append(queues, fmt.Sprintf("%s: {plugin: noop, min_workers: %d, max_workers: 1}", queueName(i), oneFor(i)))
	}
	if err := b.admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	err := b.withManager(ctx, strings.Join(queues, ", "), func(ctx context.Context) error {
		straight, err := direct.Open("unix://"+b.socket(), slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer func() { _ = straight.Close() }()
		api, err := client.Dial("unix:" + b.apiSocket())
		if err != nil {
			return err
		}
		defer func() { _ = api.Close() }()
		for name, c := range map[string]client.Client{"drover": straight, "drover, API": api} {
			i := idle{name: name}
			if i.manager, i.redis, err = b.idleCost(ctx); err != nil {
				return err
			}
			i.took, err = oneByOne(ctx, latencyTasks, func(n int) error {
				_, err := client.Call[any](ctx, c, kind, map[string]any{"data": fmt.Sprint(name, n)})
				return err
			})
			if err != nil {
				return err
			}
			all = append(all, i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, a := range []struct {
		name  string
		poll  time.Duration
		tasks int
	}{{"asynq at its default", 0, latencyDefault}, {"asynq at 20 ms", asynqFast, latencyTasks}} {
		i, err := b.idleAsynq(ctx, a.name, a.poll, a.tasks)
		if err != nil {
			return err
		}
		all = append(all, i)
	}
	reportLatency(out, all)
	return nil
}

func queueName(i int) string {
	if i == 0 {
		return kind
	}
	return fmt.Sprint(kind, i)
}

// oneFor is 1 for the queue that gets tasks, whose worker shall be there.
func oneFor(i int) int {
	if i == 0 {
		return 1
	}
	return 0
}

// idleAsynq measures one asynq.Server in this process, whose handler tells the client by a channel.
func (b *bench) idleAsynq(ctx context.Context, name string, poll time.Duration, tasks int) (idle, error) {
	i := idle{name: name}
	if err := b.admin.FlushAll(ctx).Err(); err != nil {
		return i, err
	}
	rdb := b.client("unix")
	defer func() { _ = rdb.Close() }()
	queues := map[string]int{}
	for n := range idleQueues {
		queues[queueName(n)] = 1
	}
	ended := make(chan struct{}, 1)
	server := asynq.NewServerFromRedisClient(rdb, asynq.Config{Concurrency: concurrency, Queues: queues, LogLevel: asynq.FatalLevel, TaskCheckInterval: poll})
	if err := server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { ended <- struct{}{}; return nil })); err != nil {
		return i, err
	}
	defer server.Shutdown()
	var err error
	if i.manager, i.redis, err = b.idleCost(ctx); err != nil {
		return i, err
	}
	enqueuer := asynq.NewClientFromRedisClient(b.admin)
	i.took, err = oneByOne(ctx, tasks, func(int) error {
		if _, err := enqueuer.EnqueueContext(ctx, asynq.NewTask(kind, []byte(`{}`)), asynq.Queue(kind)); err != nil {
			return err
		}
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return i, err
}

// idleCost is what this process and Redis use of a core while nothing happens.
func (b *bench) idleCost(ctx context.Context) (manager, redis float64, err error) {
	if err := rest(ctx, idleBeforeFirst); err != nil {
		return 0, 0, err
	}
	pids := []int{os.Getpid(), b.server.Process.Pid}
	var before, after [2]time.Duration
	for i, pid := range pids {
		if before[i], err = processorTime(pid); err != nil {
			return 0, 0, err
		}
	}
	began := time.Now()
	if err := rest(ctx, idleFor); err != nil {
		return 0, 0, err
	}
	for i, pid := range pids {
		if after[i], err = processorTime(pid); err != nil {
			return 0, 0, err
		}
	}
	took := float64(time.Since(began))
	return float64(after[0]-before[0]) / took, float64(after[1]-before[1]) / took, nil
}

// oneByOne does something with pauses in between, and returns how long it took each time.
func oneByOne(ctx context.Context, times int, do func(n int) error) ([]time.Duration, error) {
	var took []time.Duration
	for n := range times + warmUp {
		began := time.Now()
		if err := do(n); err != nil {
			return nil, err
		}
		if n >= warmUp || times < latencyTasks {
			took = append(took, time.Since(began))
		}
		if err := rest(ctx, pauseLeast+rand.N(pauseSpread)); err != nil {
			return nil, err
		}
	}
	slices.Sort(took)
	return took, nil
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func reportLatency(out io.Writer, all []idle) {
	_, _ = fmt.Fprintf(out, "\nOne no-op task at a time on an idle system, submit to result at the client; %d idle queues, of a core (wanted: %s, %s, %.0f %%, %.0f %%)\n%-22s %10s %10s %10s %10s\n",
		idleQueues, wantMedian, wantSlowest, 100*wantManager, 100*wantRedis, "", "p50", "p99", "manager", "Redis")
	for _, i := range all {
		_, _ = fmt.Fprintf(out, "%-22s %10s %10s %8.1f %% %8.1f %%\n", i.name, short(percentile(i.took, 1./2)), short(percentile(i.took, percentileOfMost)), 100*i.manager, 100*i.redis)
	}
}

func percentile(sorted []time.Duration, part float64) time.Duration {
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

func short(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
