package intake_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// counted is a Redis client that counts the lane's own scripts.
type counted struct {
	redis.UniversalClient
	calls atomic.Int64
}

func (c *counted) Process(ctx context.Context, cmd redis.Cmder) error {
	c.calls.Add(1)
	return c.UniversalClient.Process(ctx, cmd)
}

// cpu is the processor time that this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	check(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ends counts how often each task was run to its end.
type ends struct {
	mu   sync.Mutex
	runs map[string]int
}

func (e *ends) run(r *run) job.Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runs == nil {
		e.runs = map[string]int{}
	}
	e.runs[r.ID.Key]++
	return atOnce(r)
}

func (e *ends) distinct() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runs)
}

// records checks that every task has the record of its end.
func records(t *testing.T, c redis.UniversalClient, keys []string) {
	t.Helper()
	for _, key := range keys {
		compareRecord(t, c, key, task.Completed)
	}
}

// Redis is killed while tasks run, and started again with what it had made durable: the verdicts that could not be stored
// are stored then, each task has run once, the lane did not spin meanwhile, and the log has one line for the change and one back.
func TestRedisIsKilledAndRestarted(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenv.RedisOptions{UnixSocket: true, AppendOnly: true})
	keys := submit(t, b.client, 60)
	release := make(chan struct{})
	var e ends
	c := &counted{UniversalClient: b.client}
	m := start(t, c, 4, 4, func(r *run) job.Outcome {
		select {
		case <-release:
		case <-r.interrupted:
			return job.Outcome{End: job.Interrupted}
		}
		return e.run(r)
	})
	until(t, "4 run and 4 are buffered", func() bool {
		running, buffered := m.pool.load()
		return running == 4 && buffered == 4
	})
	b.server.Kill()
	close(release) // 8 verdicts cannot be stored now
	until(t, "the trouble is seen", func() bool { return m.in.Health().Err() != nil && len(m.log.with("store what became")) == 1 })
	calls, used := c.calls.Load(), cpu(t)
	const window = 2 * time.Second
	<-time.After(window)
	if n := c.calls.Load() - calls; n > 30 {
		t.Errorf("%d calls in %s while Redis is away, want about 16", n, window)
	}
	t.Logf("%d calls and %s of processor time (of all tests) in %s", c.calls.Load()-calls, cpu(t)-used, window)
	b.server.Start()
	until(t, "all have ended", func() bool { return e.distinct() == len(keys) && m.in.InHand() == 0 })
	until(t, "Redis is well", func() bool { return m.in.Health().Err() == nil })
	records(t, b.client, keys)
	for key, n := range e.runs {
		if n != 1 {
			t.Errorf("task %s ran %d times", key, n)
		}
	}
	for begin, end := range map[string]string{"take tasks from": "tasks are taken", "store what became": "tasks are settled"} {
		// Whether anything was to be taken meanwhile is a matter of moments.
		if n := len(m.log.with(begin)); n > 1 || n != len(m.log.with(end)) {
			t.Errorf("%q is logged %d times, %q %d times", begin, n, end, len(m.log.with(end)))
		}
	}
	check(t, m.stop())
	ledger(t, b.client, 0)
}

// Redis hangs for some seconds: nothing is lost or run twice, also what a dequeue took whose answer never came.
func TestRedisHangs(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenv.RedisOptions{UnixSocket: true})
	keys := submit(t, b.client, 400)
	var e ends
	m := start(t, b.client, 4, 20, e.run)
	until(t, "some have run", func() bool { return e.distinct() > 40 })
	b.server.Freeze()
	<-time.After(6 * time.Second) // longer than a call may take
	b.server.Thaw()
	until(t, "all have ended", func() bool { return e.distinct() == len(keys) && m.in.InHand() == 0 })
	records(t, b.client, keys)
	for key, n := range e.runs {
		if n != 1 {
			t.Errorf("task %s ran %d times", key, n)
		}
	}
	check(t, m.stop())
	ledger(t, b.client, 0)
}

// Connections that are reset all the time, in the middle of calls, lose no task, run none twice and leave none behind.
func TestConnectionsAreReset(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenv.RedisOptions{UnixSocket: true})
	p := startProxy(t, b.server.Network(), b.server.Addr())
	keys := submit(t, b.client, 600)
	var e ends
	m := start(t, connect(t, "tcp", p.listener.Addr().String()), 4, 60, e.run)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	resets := 0
	for e.distinct() < len(keys) && resets < 1000 {
		<-tick.C
		p.reset()
		resets++
	}
	t.Logf("%d resets", resets)
	until(t, "all have ended", func() bool { return e.distinct() == len(keys) && m.in.InHand() == 0 })
	records(t, b.client, keys)
	for key, n := range e.runs {
		if n != 1 {
			t.Errorf("task %s ran %d times", key, n)
		}
	}
	check(t, m.stop())
	ledger(t, b.client, 0)
}

// A stop while Redis is gone, and one while it hangs, ends soon after it has been given up, with the exact number of
// tasks that had to be left.
func TestStopWithoutRedis(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*testenv.Redis){"gone": (*testenv.Redis).Kill, "hanging": (*testenv.Redis).Freeze} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := redisServer(t, testenv.RedisOptions{UnixSocket: true})
			submit(t, b.client, 50)
			m := start(t, b.client, 4, 9, untilTold)
			until(t, "4 run and 9 are buffered", func() bool {
				running, buffered := m.pool.load()
				return running == 4 && buffered == 9
			})
			away(b.server)
			m.begin()
			const patience = time.Second
			<-time.After(patience) // as the manager does
			began := time.Now()
			close(m.giveUp)
			err := m.await()
			if took := time.Since(began); took > 1500*time.Millisecond {
				t.Errorf("Run returned %s after it was told to give up", took)
			}
			var left leftError
			if !errors.As(err, &left) || left != 13 || m.in.InHand() != 13 {
				t.Errorf("Run returned %v and %d are in hand, want 13 left", err, m.in.InHand())
			}
			_ = b.client.Close() // as the manager does: it ends the calls that hang
		})
	}
}

// A stop during an outage that ends in time leaves nothing: all is put back as if nothing had been.
func TestStopSurvivesAShortOutage(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenv.RedisOptions{UnixSocket: true, AppendOnly: true})
	keys := submit(t, b.client, 50)
	m := start(t, b.client, 4, 9, untilTold)
	until(t, "4 run and 9 are buffered", func() bool {
		running, buffered := m.pool.load()
		return running == 4 && buffered == 9
	})
	b.server.Kill()
	m.begin()
	b.server.Start()
	check(t, m.await())
	if got := waiting(t, b.client); len(got) != len(keys) || got[0] != keys[0] || got[12] != keys[12] {
		t.Errorf("the queue is %v", got)
	}
	ledger(t, b.client, 0)
}

// The lease of a task that runs for long moves on, so that nobody takes it for an orphan, and it does so too for one that
// asynq has already ended. This takes as long as one beat.
func TestLeaseMoves(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenv.RedisOptions{UnixSocket: true})
	keys := submit(t, b.client, 2)
	m := start(t, b.client, 2, 0, untilTold)
	until(t, "both run", func() bool { running, _ := m.pool.load(); return running == 2 })
	score := func(key string) float64 { return b.client.ZScore(t.Context(), task.KeysOf(queue).Lease(), key).Val() }
	first := score(keys[0])
	past := float64(time.Now().Add(-time.Second).Unix())
	check(t, b.client.ZAdd(t.Context(), task.KeysOf(queue).Lease(), redis.Z{Score: past, Member: keys[1]}).Err())
	until(t, "the lease has moved", func() bool { return score(keys[0]) >= first+4 })
	until(t, "the other's too", func() bool { return score(keys[1]) >= first+4 })
	check(t, m.stop())
	ledger(t, b.client, 0)
}
