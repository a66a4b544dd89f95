package intake_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// pickUp measures how long lone tasks take from their submit to their handler, in an idle system.
func pickUp(t *testing.T, b broker, n int, submit func(key string)) []time.Duration {
	t.Helper()
	began := make(chan time.Time, 1)
	m := start(t, b.client, 1, 1, func(r *run) job.Outcome {
		began <- time.Now()
		return atOnce(r)
	})
	submit("first")
	<-began // the lane is up
	took := make([]time.Duration, n)
	for i := range took {
		until(t, "it is idle", func() bool { return m.in.InHand() == 0 })
		now := time.Now()
		submit("lone" + strconv.Itoa(i))
		select {
		case at := <-began:
			took[i] = at.Sub(now)
		case <-time.After(patience):
			t.Fatalf("task %d was never picked up", i)
		}
	}
	slices.Sort(took)
	t.Logf("pick-up of %d lone tasks: p50 %s, p99 %s", n, took[n/2], took[n*99/100])
	return took
}

// A lone task is picked up within milliseconds when its client publishes the submit, at the latest by the base poll when
// it does not.
func TestLoneTaskIsPickedUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		took := pickUp(t, b, 100, func(key string) { submitOne(t, b.client, key, `{}`) })
		if p50 := took[len(took)/2]; p50 > 25*time.Millisecond {
			t.Errorf("half of the tasks took more than %s: the publish does not wake the lane", p50)
		}
	})
	t.Run("foreign", func(t *testing.T) {
		t.Parallel()
		b := redisServer(t, testenvSocket())
		client := asynq.NewClientFromRedisClient(b.client)
		took := pickUp(t, b, 20, func(string) {
			must[*asynq.TaskInfo](t)(client.Enqueue(asynq.NewTask(kind, []byte(`{}`)), asynq.Queue(queue)))
		})
		if p50 := took[len(took)/2]; p50 > 300*time.Millisecond {
			t.Errorf("half of the tasks took more than %s, more than the base poll of 250 ms", p50)
		}
	})
}

// commands is how many commands Redis has carried out for clients, and how many scripts; the commands inside those are left out.
func commands(t *testing.T, c redis.UniversalClient) (scripts, others int) {
	t.Helper()
	inside := []string{"exists", "rpoplpush", "lrange", "hget", "hmget", "zrangebyscore", "zrange", "zadd"}
	for line := range strings.Lines(must[string](t)(c.Info(context.Background(), "commandstats").Result())) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		n, _ := strconv.Atoi(calls)
		switch {
		case name == "evalsha" || name == "eval":
			scripts += n
		case !slices.Contains(inside, name):
			others += n
		}
	}
	return scripts, others
}

// An idle lane costs Redis few commands a second: the base poll, asynq's look for due tasks, its heartbeat.
func TestIdleLaneIsCheap(t *testing.T) {
	t.Parallel()
	b := redisServer(t, testenvSocket())
	submit(t, b.client, 1)
	m := start(t, b.client, 4, 20, atOnce)
	until(t, "it is idle", func() bool { return len(m.pool.taken()) == 1 && m.in.InHand() == 0 })
	scripts, others := commands(t, b.client)
	const window = 3 * time.Second
	<-time.After(window)
	scripts2, others2 := commands(t, b.client)
	perSecond := float64(scripts2-scripts) / window.Seconds()
	t.Logf("%.1f scripts a second, %d other commands in %s", perSecond, others2-others, window)
	if perSecond > 9 {
		t.Errorf("an idle lane runs %.1f scripts a second, want about 6", perSecond)
	}
	if others2-others > 20 {
		t.Errorf("and %d other commands in %s", others2-others, window)
	}
}

// While the pool takes nothing, nothing is taken from Redis, and asking costs nothing.
func TestNoCapacityTakesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		m := start(t, b.client, 0, 0, atOnce)
		until(t, "the queue has been announced", func() bool {
			return b.client.Exists(t.Context(), task.KeysOf(queue).Entry()).Val() == 1
		})
		keys := submit(t, b.client, 5)
		<-time.After(600 * time.Millisecond) // more than two polls
		if got := waiting(t, b.client); !slices.Equal(got, keys) {
			t.Errorf("the queue is %v", got)
		}
		m.pool.resize(2, 0)
		m.in.Kick()
		until(t, "all have run", func() bool { return info(t, b.client).Size == 0 })
	})
}

// A paused queue gives nothing, and goes on by itself when it is resumed.
func TestPausedQueueWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		submit(t, b.client, 1)
		inspector := asynq.NewInspectorFromRedisClient(b.client)
		check(t, inspector.PauseQueue(queue))
		m := start(t, b.client, 2, 2, atOnce)
		<-time.After(600 * time.Millisecond)
		if got := m.pool.taken(); len(got) != 0 {
			t.Errorf("%v were taken from a paused queue", got)
		}
		check(t, inspector.UnpauseQueue(queue))
		until(t, "it has run", func() bool { return info(t, b.client).Size == 0 })
	})
}

// The pool never holds more than its capacity, which grows and shrinks while tasks run, and the lane uses all of it.
func TestCapacityChangesLive(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		release := make(chan struct{})
		m := start(t, b.client, 2, 3, func(r *run) job.Outcome {
			select {
			case <-release:
				return atOnce(r)
			case <-r.interrupted:
				return job.Outcome{End: job.Interrupted}
			}
		})
		submit(t, b.client, 100)
		holds := func(n int) func() bool {
			return func() bool {
				running, buffered := m.pool.load()
				return running+buffered == n
			}
		}
		until(t, "5 are held", holds(5))
		m.pool.resize(10, 20)
		m.in.Kick()
		until(t, "30 are held", holds(30))
		m.pool.resize(1, 1)
		m.in.Kick()
		for range 28 {
			release <- struct{}{}
		}
		until(t, "2 are held", holds(2))
		m.pool.resize(4, 0)
		m.in.Kick()
		until(t, "4 are held", holds(4))
		m.pool.mu.Lock()
		most := m.pool.most
		m.pool.mu.Unlock()
		if most > 30 {
			t.Errorf("the pool held %d at once", most)
		}
		check(t, m.stop())
		if i := info(t, b.client); i.Pending != 72 || i.ProcessedTotal != 28 {
			t.Errorf("asynq says %+v", i)
		}
		ledger(t, b.client, 0)
	})
}
