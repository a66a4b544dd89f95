package intake_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// fill puts n tasks of 100 bytes into the queue.
func fill(b *testing.B, c redis.UniversalClient, n int) {
	b.Helper()
	ctx, names := context.Background(), task.KeysOf(queue)
	payload := []byte(`{"data":"` + strings.Repeat("x", 89) + `"}`)
	for first := 0; first < n; first += 1000 {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := first; i < min(n, first+1000); i++ {
				key := fmt.Sprintf("k%07d", i)
				p.HSet(ctx, names.Task(key), "msg", task.NewMessage(task.ID{Queue: queue, Key: key}, kind, payload, time.Now()).Encode(), "state", "pending")
				p.LPush(ctx, names.Pending(), key)
			}
			return nil
		})
		check(b, err)
	}
}

// Benchmark of the two scripts: a batch of 64 taken and settled, with records and events; the time is that of one task.
func BenchmarkBatch(b *testing.B) {
	br := redisServer(b, testenvSocket())
	fill(b, br.client, b.N)
	lane := newBench(br.client)
	b.ResetTimer()
	for range (b.N + 63) / 64 {
		jobs := lane.Take(64)
		verdicts := make([]job.Verdict, len(jobs))
		for i, j := range jobs {
			verdicts[i] = verdictOf(j, job.Outcome{End: job.Succeeded, Result: []byte(`{}`), Ended: time.Now()})
		}
		lane.SettleAll(jobs, verdicts)
	}
}

// Benchmark of the whole lane: tasks enqueued first and drained through a pool whose jobs do nothing, at the benchmark
// program's capacity of 192.
func BenchmarkDrain(b *testing.B) {
	br := redisServer(b, testenvSocket())
	fill(b, br.client, b.N)
	var done atomic.Int64
	all := make(chan struct{})
	n := int64(b.N)
	b.ReportAllocs()
	b.ResetTimer()
	m := start(b, br.client, 64, 128, func(r *run) job.Outcome {
		if done.Add(1) == n {
			close(all)
		}
		return atOnce(r)
	})
	<-all
	until(b, "all are settled", func() bool { return m.in.InHand() == 0 })
	b.StopTimer()
	check(b, m.stop())
}
