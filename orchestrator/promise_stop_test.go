package orchestrator_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A trouble is what a manager is in when it is told to stop.
type trouble struct {
	settings string                                  // of the queue
	command  func(t *testing.T, dir string) []string // of the worker; nil for the usual one
	orders   []map[string]any
	ready    func(t *testing.T, m *manager) error // nil when the trouble is there
	// finished and returned are what the report must say; moving is true when tasks come and go meanwhile, and only their sum is known.
	finished, returned int
	moving             bool
}

func troubles() map[string]trouble {
	several := func(n int, order map[string]any) []map[string]any {
		orders := make([]map[string]any, n)
		for i := range orders {
			orders[i] = order
		}
		return orders
	}
	twoRun := func(t *testing.T, m *manager) error { return m.runsAndHolds(t, 2, 2) }
	return map[string]trouble{
		"tasks that grow over memory_max": {
			settings: "max_workers: 2, memory_max: 96MiB, max_kills: 1000, max_failures: 1000", moving: true,
			orders: several(6, map[string]any{"do": "leak", "bytes": 200_000_000, "ms": 60_000}),
			ready:  func(_ *testing.T, m *manager) error { return m.wroteLine("ended: memory-max,")() },
		},
		"poison": {
			settings: "max_workers: 2, slots: 8, max_kills: 1000, max_failures: 1000", moving: true,
			orders: append(several(1, map[string]any{"do": "exit", "code": 3}), several(15, map[string]any{"do": "sleep", "ms": 60_000})...),
			ready:  func(_ *testing.T, m *manager) error { return m.wroteLine("ended: crash,")() },
		},
		"frozen workers": {
			settings: "max_workers: 2", orders: several(4, map[string]any{"do": "stop"}), returned: 4,
			ready: func(t *testing.T, m *manager) error { return errors.Join(twoRun(t, m), m.standStill(t)) },
		},
		"tasks that ignore a cancel": {
			settings: "max_workers: 2", orders: several(4, map[string]any{"do": "ignore-cancel", "ms": 60_000}), returned: 4, ready: twoRun,
		},
		"children that hold the pipes": {
			settings: "max_workers: 2", orders: several(4, map[string]any{"do": "ignore-cancel", "ms": 60_000}), returned: 4, ready: twoRun,
			command: func(t *testing.T, dir string) []string {
				mark := fmt.Sprintf("%d", 4_000_000+os.Getpid())
				killMarked(t, mark)
				return scattering(t, dir, mark)
			},
		},
		"tasks that fail meanwhile": {
			settings: "max_workers: 2, retry_backoff: 1h", orders: several(4, map[string]any{}), returned: 4, ready: twoRun,
			command: func(t *testing.T, _ string) []string {
				return []string{testenv.BuildBinaries(t, "plugins/exec")[0], "--name", "misbehave", "--once", "--", "/bin/sh", "-c", "sleep 0.9; exit 1"}
			},
		},
		"tasks that end meanwhile": {
			settings: "max_workers: 2", orders: several(4, map[string]any{"do": "sleep", "ms": 900}), finished: 2, returned: 2, ready: twoRun,
		},
		"a program that does not start": {
			orders: several(4, map[string]any{}), command: func(*testing.T, string) []string { return []string{"/bin/false"} },
			ready: func(t *testing.T, m *manager) error {
				if q := m.queue(t, "misbehave"); q.GetState() != "circuit-open" || q.GetWaiting() != 4 {
					return fmt.Errorf("the queue is %s, and %d wait", q.GetState(), q.GetWaiting())
				}
				return nil
			},
		},
	}
}

// Whatever trouble a manager is in, it has stopped within drain_timeout and two seconds of SIGTERM, its report is true, every task that
// has not ended is back in its queue, and nothing is left of it.
func TestStopInTrouble(t *testing.T) {
	t.Parallel()
	for name, trouble := range troubles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testenv.StartRedis(t, testenv.RedisOptions{})
			m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "drain_timeout: 2s", trouble.settings)
			if trouble.command != nil {
				m.replaceWorker(trouble.command(t, m.dir)...)
			}
			m.start()
			enqueue(t, r, trouble.orders)
			eventually(t, "the trouble is there", func() error { return trouble.ready(t, m) })
			report := m.terminate(2 * time.Second)
			if report.code != 0 || report.left != 0 {
				t.Errorf("exit code %d, %d left", report.code, report.left)
			}
			sum := report.finished + report.returned
			switch {
			case !trouble.moving && (report.finished != trouble.finished || report.returned != trouble.returned || sum != report.inHand):
				t.Errorf("%+v; want %d finished and %d returned", report, trouble.finished, trouble.returned)
			case trouble.moving && (sum < report.inHand || sum == 0):
				t.Errorf("%+v: some are missing", report)
			}
			wantAllBack(t, r, len(trouble.orders)-trouble.finished)
			if dirs := socketDirs(m); len(dirs) > 0 {
				t.Errorf("left are %v", dirs)
			}
		})
	}
}

// A stop while Redis is away, in whatever way, takes no longer either; what could not be put back is said to be left, and is.
func TestStopWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	for name, a := range absences() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testenv.StartRedis(t, testenv.RedisOptions{AppendOnly: true})
			w := openWay(t, r.Addr())
			m := setUp(t, fmt.Sprintf("{address: %q}", "redis://"+w.addr()), "drain_timeout: 2s", "max_workers: 2, buffer: 2").start()
			// One ends while the manager stops, and its end cannot be stored.
			enqueue(t, r, []map[string]any{{"do": "sleep", "ms": 900}, {"do": "ignore-cancel", "ms": 60_000}, {"do": "return"}, {"do": "return"}})
			eventually(t, "two run and two are held", func() error { return m.runsAndHolds(t, 2, 2) })
			a.away(r, w)
			report := m.terminate(2 * time.Second)
			if report.code != 1 || report.finished != 0 || report.returned != 0 || report.left != 4 || report.inHand != 4 {
				t.Errorf("%+v; want 4 left", report)
			}
			a.back(r, w)
			rdb := redis.NewClient(&redis.Options{Addr: r.Addr()})
			defer func() { _ = rdb.Close() }()
			if n := rdb.LLen(t.Context(), task.KeysOf("misbehave").Active()).Val(); n != 4 {
				t.Errorf("%d are active, and 4 were said to be left", n)
			}
		})
	}
}

// enqueue puts orders into the queue "misbehave", as a foreign client, whom nobody asks whether the plugin can be started.
func enqueue(t *testing.T, r *testenv.Redis, orders []map[string]any) {
	t.Helper()
	foreign := asynq.NewClient(asynq.RedisClientOpt{Addr: r.Addr()})
	defer func() { _ = foreign.Close() }()
	for _, order := range orders {
		payload, err := client.EncodePayload(order)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := foreign.EnqueueContext(t.Context(), asynq.NewTask("misbehave", payload), asynq.Queue("misbehave")); err != nil {
			t.Fatal(err)
		}
	}
}

// stopReport is what a stop said at its beginning and at its end.
type stopReport struct{ code, inHand, finished, returned, left int }

// terminate sends the manager SIGTERM, waits for its end, which must come within drain_timeout and two seconds, and returns its report.
func (m *manager) terminate(drain time.Duration) stopReport {
	m.t.Helper()
	const slack = 2 * time.Second
	late, began := watchLateness(m.t).grant(slack), time.Now()
	m.signal(syscall.SIGTERM)
	report := stopReport{code: m.wait()}
	late.within(m.t, "the stop", time.Since(began), drain+2*time.Second)
	number := func(pattern string) int {
		found := regexp.MustCompile(pattern).FindStringSubmatch(m.output.String())
		if found == nil {
			m.t.Fatalf("nothing like %q was said", pattern)
		}
		n, err := strconv.Atoi(found[1])
		if err != nil {
			m.t.Fatal(err)
		}
		return n
	}
	report.inHand = number(`msg=stopping in_hand=(\d+)`)
	report.finished, report.returned, report.left = number(`msg=stopped finished=(\d+)`), number(`msg=stopped .*returned=(\d+)`), number(`msg=stopped .*left=(\d+)`)
	if lines := strings.Split(strings.TrimSpace(m.output.String()), "\n"); !strings.Contains(lines[len(lines)-1], "msg=stopped") {
		m.t.Errorf("the last line is %q", lines[len(lines)-1])
	}
	return report
}

// wantAllBack checks that nothing is active, and that so many tasks wait in the queue, now or for their next try.
func wantAllBack(t *testing.T, r *testenv.Redis, want int) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.Addr()})
	defer func() { _ = rdb.Close() }()
	keys := task.KeysOf("misbehave")
	if active, leases := rdb.LLen(t.Context(), keys.Active()).Val(), rdb.ZCard(t.Context(), keys.Lease()).Val(); active != 0 || leases != 0 {
		t.Errorf("%d tasks are active, with %d leases", active, leases)
	}
	waiting, later := rdb.LLen(t.Context(), keys.Pending()).Val(), rdb.ZCard(t.Context(), keys.Retry()).Val()
	if int(waiting+later) != want {
		t.Errorf("%d tasks wait and %d are tried again later, want %d in all", waiting, later, want)
	}
}

// runsAndHolds reports, as an error, that not as many tasks of the queue "misbehave" run and are held besides.
func (m *manager) runsAndHolds(t *testing.T, running, held int64) error {
	t.Helper()
	if q := m.queue(t, "misbehave"); q.GetRunning() != running || q.GetHeld() != held {
		return fmt.Errorf("%d run, %d are held", q.GetRunning(), q.GetHeld())
	}
	return nil
}

// standStill reports, as an error, that a worker of the queue "misbehave" does not stand still.
func (m *manager) standStill(t *testing.T) error {
	t.Helper()
	for _, w := range m.workers(t, "misbehave") {
		if p, err := reaper.Look(int(w.GetPid())); err != nil || !p.Stopped() {
			return fmt.Errorf("worker %d does not: %w", w.GetId(), err)
		}
	}
	return nil
}
