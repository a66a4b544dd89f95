package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// An absence is a way in which Redis can be away.
type absence struct {
	away, back func(r *testenv.Redis, w *way)
}

func absences() map[string]absence {
	return map[string]absence{
		"frozen": {func(r *testenv.Redis, _ *way) { r.Freeze() }, func(r *testenv.Redis, _ *way) { r.Thaw() }},
		"killed": {func(r *testenv.Redis, _ *way) { r.Kill() }, func(r *testenv.Redis, _ *way) { r.Start() }},
		// Connections stay, new ones are accepted, and nothing is ever answered; the old ones stay so for ever.
		"mute": {func(_ *testenv.Redis, w *way) { w.mute(true) }, func(_ *testenv.Redis, w *way) { w.mute(false) }},
		// Every connection is broken, and no new one comes about.
		"unreachable": {func(_ *testenv.Redis, w *way) { w.close() }, func(_ *testenv.Redis, w *way) { w.open() }},
	}
}

// Redis away, in whatever way: nothing is lost and nobody is charged, the manager says so and uses under 5 % of a core meanwhile, and
// work goes on by itself within 5 seconds of its return. In the long form it is away for a minute.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	duration := 8 * time.Second
	if long() {
		duration = time.Minute
	}
	for name, a := range absences() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testenv.StartRedis(t, testenv.RedisOptions{AppendOnly: true})
			w := openWay(t, r.Addr())
			m := setUp(t, fmt.Sprintf("{address: %q}", "redis://"+w.addr()), "", "max_workers: 2, slots: 2, buffer: 8").start()
			c := straight(t, r)
			var ids []task.ID
			for i := range 40 {
				ids = append(ids, submit(t, c, "misbehave", map[string]any{"do": "sleep", "ms": 500, "value": i}))
			}
			ids = append(ids, submit(t, c, "misbehave", map[string]any{"do": "return", "value": 40}))
			eventually(t, "they run", func() error { return m.runs(t, "misbehave", 4) })

			a.away(r, w)
			gone := time.Now()
			eventually(t, "the status says so", func() error {
				if reason := m.broker(t); reason == "" {
					return fmt.Errorf("it does not")
				}
				return nil
			})
			eventually(t, "nothing old is told of the queue", func() error {
				if q := m.queue(t, "misbehave"); q.GetWaiting() != -1 || q.GetScheduled() != -1 || q.GetRetry() != -1 || q.GetDead() != -1 {
					return fmt.Errorf("it is said to be %v", q)
				}
				return nil
			})
			t.Logf("noticed after %s", time.Since(gone).Round(time.Millisecond))
			busy, began := processorTime(t, m.process.Process.Pid), time.Now() // until now it answered a question after the other
			time.Sleep(time.Until(began.Add(duration)))                        //nolint:forbidigo // the time of the absence
			share := float64(processorTime(t, m.process.Process.Pid)-busy) / float64(time.Since(began))
			t.Logf("the manager used %.1f %% of a core", 100*share)
			if share > 0.05 {
				t.Errorf("the manager used %.1f %% of a core while Redis was away", 100*share)
			}

			late := watchLateness(t)
			returned := time.Now()
			a.back(r, w)
			ended, err := client.WaitAll(t.Context(), c, ids...)
			if err != nil {
				t.Fatal(err)
			}
			resumed := time.Time{}
			for i, e := range ended {
				if e.State != task.Completed || string(e.Result) != fmt.Sprint(i) || e.Counters != (task.Counters{}) || e.Attempts != 1 {
					t.Errorf("task %d: %s with %s, %+v, %d attempts", i, e.State, e.Result, e.Counters, e.Attempts)
				}
				if e.Started.After(returned) && (resumed.IsZero() || e.Started.Before(resumed)) {
					resumed = e.Started
				}
			}
			if resumed.IsZero() {
				t.Fatal("no task began after the return of Redis: the test shows nothing")
			}
			late.within(t, "from the return of Redis to the next task", resumed.Sub(returned), 5*time.Second)
			if lines := strings.Count(m.output.String(), "\n"); lines > 400 {
				t.Errorf("the manager wrote %d lines", lines)
			}
			m.stop()
		})
	}
}

// broker is what the status says is wrong with Redis; empty for nothing.
func (m *manager) broker(t *testing.T) string {
	t.Helper()
	control, err := client.Control("unix:" + m.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = control.Close() }()
	s, err := control.Status(t.Context(), statusRequest())
	if err != nil {
		t.Fatal(err)
	}
	return s.GetManager().GetBrokerError()
}
