package orchestrator_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// reconnectRig is a manager that works, another that serves the API and does not, and the ways of the clients.
type reconnectRig struct {
	redis              *testenv.Redis
	works, serves      *manager
	toRedis, toManager *way
}

// A breach is what comes between those who wait and the ends of their tasks, and how it is mended.
type breach struct {
	opens, mends func(t *testing.T, r *reconnectRig)
}

func breaches() map[string]breach {
	return map[string]breach{
		"frozen Redis": {
			func(_ *testing.T, r *reconnectRig) { r.redis.Freeze() },
			func(_ *testing.T, r *reconnectRig) { r.redis.Thaw() },
		},
		"killed Redis": {
			func(_ *testing.T, r *reconnectRig) { r.redis.Kill() },
			func(_ *testing.T, r *reconnectRig) { r.redis.Start() },
		},
		"restarted manager": {
			func(_ *testing.T, r *reconnectRig) { r.serves.signal(syscall.SIGKILL); r.serves.wait() },
			func(_ *testing.T, r *reconnectRig) { r.serves.start() },
		},
		"frozen manager": {
			func(_ *testing.T, r *reconnectRig) { r.serves.signal(syscall.SIGSTOP) },
			func(_ *testing.T, r *reconnectRig) { r.serves.signal(syscall.SIGCONT) },
		},
		// Nothing breaks: what is sent on the connections that are there is swallowed, for ever.
		"half-open connections": {
			func(_ *testing.T, r *reconnectRig) { r.toRedis.mute(true); r.toManager.mute(true) },
			func(_ *testing.T, r *reconnectRig) { r.toRedis.mute(false); r.toManager.mute(false) },
		},
	}
}

// Who waits, by Subscribe, Wait, WaitAll or Call and by either transport, comes back by itself from whatever comes between, and learns
// what it missed.
func TestWaitsReconnect(t *testing.T) {
	t.Parallel()
	for name, b := range breaches() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reconnectRig{redis: testenv.StartRedis(t, testenv.RedisOptions{AppendOnly: true})}
			address := fmt.Sprintf("{address: %q}", r.redis.URL())
			r.works = setUp(t, address, "", "min_workers: 1, max_workers: 1, slots: 64, buffer: 64").start()
			r.serves = setUp(t, address, "", "").start()
			if _, err := r.serves.control(t).Pause(t.Context(), &apiv1.PauseRequest{Queue: "misbehave", Here: true}); err != nil {
				t.Fatal(err)
			}
			r.toRedis, r.toManager = openWay(t, r.redis.Addr()), openWay(t, r.serves.socket())
			over := map[string]client.Client{"straight to Redis": straightTo(t, "redis://"+r.toRedis.addr()), "over the API": dial(t, "http://"+r.toManager.addr())}
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			var waiting sync.WaitGroup
			for transport, c := range over {
				waitAllWays(ctx, t, &waiting, c, transport)
			}
			eventually(t, "their tasks run", func() error { return r.works.runs(t, "misbehave", int64(len(over)*len(wayNames()))) })

			b.opens(t, r)
			time.Sleep(breachLasts) //nolint:forbidigo // the time of the breach, in which the tasks end
			b.mends(t, r)
			late, mended := watchLateness(t), time.Now()
			waiting.Wait()
			late.within(t, "from the mending to the last who waits", time.Since(mended), comesBack)
			r.works.stop()
			r.serves.stop()
		})
	}
}

const (
	// breachLasts is longer than the tasks run, so that all ends are missed.
	breachLasts = 4 * time.Second
	runsFor     = 2500 * time.Millisecond
	// comesBack bounds the time in which a connection that went silent is given up (by the API's client after 15 s) and replaced.
	comesBack = 20 * time.Second
)

func wayNames() []string { return []string{"Subscribe", "Wait", "WaitAll", "Call"} }

// waitAllWays submits a task for each way of waiting, and waits for it.
func waitAllWays(ctx context.Context, t *testing.T, waiting *sync.WaitGroup, c client.Client, transport string) {
	t.Helper()
	for _, name := range wayNames() {
		order := map[string]any{"do": "sleep", "ms": runsFor.Milliseconds(), "value": transport + name}
		var id task.ID
		if name != "Call" {
			id = submitTo(t, c, order)
		}
		waiting.Go(func() {
			var ended *task.Task
			var err error
			switch name {
			case "Subscribe":
				for u, failed := range c.Subscribe(ctx, []task.ID{id}) {
					ended, err = u.Ended, failed
				}
			case "Wait":
				ended, err = client.Wait(ctx, c, id)
			case "WaitAll":
				var all []*task.Task
				if all, err = client.WaitAll(ctx, c, id); err == nil {
					ended = all[0]
				}
			case "Call":
				var result string
				result, err = client.Call[string](ctx, c, "misbehave", order)
				ended = &task.Task{State: task.Completed, Result: fmt.Appendf(nil, "%q", result)}
			}
			if err != nil || ended == nil || ended.State != task.Completed || string(ended.Result) != fmt.Sprintf("%q", transport+name) {
				t.Errorf("%s %s gave %+v, %v", name, transport, ended, err)
			}
		})
	}
}
