package orchestrator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// What a manager's memory may grow by, at most. A subscription through the API is a stream of HTTP/2 with its goroutines; a stored
// record is Redis's alone.
const (
	perSubscription  = 64 << 10
	perMillion       = 16 << 20
	whateverElse     = 48 << 20
	subscriptionsPer = 500 // connection; the API carries 1000
)

// The memory of a manager is bounded, whatever those who subscribe do: a thousand of them, in the long form ten thousand, ask and then
// never read what comes. Who reads is served meanwhile. A hundred thousand stored records, in the long form a million, cost it nothing.
func TestManagersMemoryIsBounded(t *testing.T) {
	t.Parallel()
	subscriptions, records := 1000, 100_000
	if long() {
		subscriptions, records = 10_000, 1_000_000
	}
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}\napi: {rate: off, caller_waits: %d, waits: %d}", r.URL(), 2*subscriptions, 2*subscriptions), "", "max_workers: 1, slots: 8").start()
	c := m.connect(t)
	for i := range 20 {
		waitFor(t, c, submitTo(t, c, map[string]any{"do": "return", "value": i}))
	}
	before := resident(t, m.process.Process.Pid)

	ended := submitTo(t, c, map[string]any{"do": "return", "value": strings.Repeat("x", 32<<10)})
	waitFor(t, c, ended)
	never := submitTo(t, c, map[string]any{"do": "return"}, client.Delay(time.Hour))
	ctx, leave := context.WithCancel(t.Context())
	var open sync.WaitGroup
	var standing atomic.Int32
	for range subscriptions / subscriptionsPer {
		of := m.connect(t)
		for range subscriptionsPer {
			open.Go(func() { ask(ctx, t, of, []task.ID{ended, never}, &standing) })
		}
	}
	eventually(t, "all stand", func() error {
		if n := standing.Load(); int(n) < subscriptions {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	began := time.Now()
	waitFor(t, c, submitTo(t, c, map[string]any{"do": "return", "value": "meanwhile"}))
	took := time.Since(began)
	with := resident(t, m.process.Process.Pid)
	t.Logf("%d subscriptions that do not read: %d MiB instead of %d, %d KiB each; another wait took %s", subscriptions, with>>20, before>>20, (with-before)/int64(subscriptions)>>10, took)
	if with-before > int64(subscriptions)*perSubscription+whateverElse {
		t.Errorf("the manager grew from %d to %d MiB", before>>20, with>>20)
	}
	leave()
	open.Wait()

	before = resident(t, m.process.Process.Pid)
	storeRecords(t, r, records)
	for i := range 20 {
		waitFor(t, c, submitTo(t, c, map[string]any{"do": "return", "value": -i - 1}))
	}
	after := resident(t, m.process.Process.Pid)
	t.Logf("%d stored records: %d MiB instead of %d", records, after>>20, before>>20)
	if after-before > perMillion {
		t.Errorf("the manager grew from %d to %d MiB", before>>20, after>>20)
	}
	m.stop()
}

// ask subscribes, and reads nothing after the first update until ctx ends.
func ask(ctx context.Context, t *testing.T, c client.Client, ids []task.ID, standing *atomic.Int32) {
	for _, err := range c.Subscribe(ctx, ids) {
		if err != nil {
			t.Errorf("subscribe: %v", err)
			return
		}
		standing.Add(1)
		<-ctx.Done()
		return
	}
}

// storeRecords puts records of completed tasks into Redis.
func storeRecords(t *testing.T, r *testenv.Redis, n int) {
	t.Helper()
	record, err := task.EncodeRecord(&task.Task{ID: task.RandomID("misbehave"), Kind: "misbehave", State: task.Completed, Result: []byte(`{"ok":true}`), Attempts: 1, Manager: "test", Submitted: time.Now(), Started: time.Now(), Ended: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: r.Addr(), ReadTimeout: patience})
	defer func() { _ = rdb.Close() }()
	const atOnce = 10_000
	for from := 0; from < n; from += atOnce {
		err := rdb.Eval(t.Context(), `for i = ARGV[1], ARGV[1] + ARGV[2] - 1 do redis.call('SET', ARGV[3] .. string.format('%026d', i), ARGV[4], 'EX', 3600) end`,
			nil, from, atOnce, task.KeysOf("misbehave").Record(""), record).Err()
		if err != nil && err != redis.Nil { //nolint:errorlint // as it comes
			t.Fatal(err)
		}
	}
}

// resident is the memory that a process has, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
