package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

const (
	waiters   = 100
	perWaiter = 100
)

// A hundred waiters wait for a hundred tasks each, by both transports: tasks that ended before, that end while they begin to wait,
// and long after; two managers and Redis are killed and started again in between. Every waiter is told every end exactly once, as it
// was, and who has a deadline is back by then.
func TestManyWaitersMissNothing(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{AppendOnly: true, Config: []string{"appendfsync everysec"}})
	address := fmt.Sprintf("{address: %q}", r.URL())
	const settings = "min_workers: 2, max_workers: 2, slots: 16, buffer: 64"
	managers := []*manager{setUp(t, address, "", settings).start(), setUp(t, address, "", settings).start()}
	clients := []client.Client{straight(t, r), managers[0].connect(t), straight(t, r), managers[1].connect(t)}
	tasks := submitMany(t, clients[0], "before", 400)
	if _, err := client.WaitAll(t.Context(), clients[0], tasks...); err != nil {
		t.Fatal(err)
	}
	tasks = append(tasks, submitMany(t, clients[0], "during", 400)...)
	tasks = append(tasks, submitMany(t, clients[0], "after", 400, client.Delay(6*time.Second))...)

	late := watchLateness(t)
	crowd := &crowd{t: t, tasks: tasks}
	var waiting sync.WaitGroup
	for n := range waiters {
		waiting.Go(func() { crowd.wait(clients[n%len(clients)], n) })
	}
	eventually(t, "everybody was told something", func() error {
		if n := crowd.begun.Load(); n < waiters {
			return fmt.Errorf("%d of %d were", n, waiters)
		}
		return nil
	})
	for _, m := range managers {
		m.signal(syscall.SIGKILL)
		m.wait()
		m.start()
	}
	r.Kill()
	r.Start()
	managers[0].signal(syscall.SIGKILL)
	managers[0].wait()
	managers[0].start()
	began := time.Now()
	waiting.Wait()
	late.within(t, "from the last restart to the last waiter", time.Since(began), 30*time.Second)
	for _, m := range managers {
		m.stop()
	}
}

// submitMany submits tasks that end in every way in which a worker ends them.
func submitMany(t *testing.T, c client.Client, name string, n int, options ...client.Option) []task.ID {
	t.Helper()
	work := make([]client.Work, n)
	for i := range work {
		order := map[string]any{"do": "return", "value": fmt.Sprint(name, i)}
		if i%10 == 9 {
			order = map[string]any{"do": "permanent", "note": fmt.Sprint(name, i)}
		}
		work[i] = client.Work{Queue: "misbehave", Payload: order, Options: options}
	}
	batch, err := c.SubmitBatch(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	return client.IDs(batch)
}

// crowd is many who wait for some of the same tasks.
type crowd struct {
	t     *testing.T
	tasks []task.ID
	begun atomic.Int32
}

// wait waits for a hundred of the tasks, until all have ended or, every tenth, for two seconds.
func (c *crowd) wait(on client.Client, n int) {
	c.t.Helper()
	random := rand.New(rand.NewPCG(uint64(n), 0)) //nolint:gosec // repeatable
	var ids []task.ID
	for _, i := range random.Perm(len(c.tasks))[:perWaiter] {
		ids = append(ids, c.tasks[i])
	}
	limit, short := 2*time.Minute, n%10 == 0
	if short {
		limit = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	began, seen := time.Now(), map[task.ID]int{}
	for u, err := range on.Subscribe(ctx, ids) {
		if len(seen) == 0 {
			c.begun.Add(1)
		}
		if err != nil {
			if took := time.Since(began); !short || !errors.Is(err, context.DeadlineExceeded) || took > limit+5*time.Second {
				c.t.Errorf("waiter %d, told of %d, after %s: %v", n, len(seen), took, err)
			}
			return
		}
		if seen[u.ID]++; seen[u.ID] > 1 {
			c.t.Errorf("waiter %d was told twice of %s", n, u.ID)
		}
		if u.Ended == nil || u.Ended.State != task.Completed && u.Ended.State != task.Dead || u.Ended.Counters.Kills > 0 {
			c.t.Errorf("waiter %d was told %+v", n, u)
		}
	}
	if len(seen) != len(ids) {
		c.t.Errorf("waiter %d was told of %d of %d", n, len(seen), len(ids))
	}
}
