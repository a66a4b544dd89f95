package orchestrator_test

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"

	"github.com/redis/go-redis/v9"
)

// A stop while Redis is frozen ends within drain_timeout and two seconds, with a report that is true: what could not be put back
// is left, and nothing else is said of it.
func TestStopWhileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	const drain = time.Second
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "drain_timeout: 1s", "max_workers: 2, buffer: 4").start()
	c := straight(t, r)
	for i := range 6 {
		if _, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "ignore-cancel", "ms": 20000, "value": i}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "two run", func() error {
		if n := len(childrenOf(t, m.process.Process.Pid, "misbehave")); n != 2 {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	eventually(t, "four are held", func() error {
		if held := m.queue(t, "misbehave").GetHeld(); held != 4 {
			return fmt.Errorf("%d are", held)
		}
		return nil
	})
	r.Freeze()
	defer r.Thaw()
	asker := m.connect(t) // a call that hangs does not hold up the stop
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = asker.Submit(t.Context(), "misbehave", map[string]any{"do": "return", "value": 7})
	}()
	began := time.Now()
	m.signal(syscall.SIGTERM)
	code := m.wait()
	<-asked
	const slack = time.Second // of a busy machine
	if took := time.Since(began); took > drain+2*time.Second+slack {
		t.Errorf("the stop took %s", took)
	}
	report := regexp.MustCompile(`msg=stopped (.*)`).FindString(m.output.String())
	if code != 1 || !strings.Contains(report, "finished=0 returned=0 left=6") {
		t.Errorf("exit code %d, %q", code, report)
	}
}

// A Redis that has no memory left refuses the renewal of leases. A manager that lives does not take that for its own death: its
// running tasks go on and end once.
func TestRedisOutOfMemory(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1").start()
	c := straight(t, r)
	s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "sleep", "ms": 20000, "value": 1})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs", func() error {
		got, err := c.Get(t.Context(), s.ID)
		if err == nil && got.State != task.Running {
			err = fmt.Errorf("it is %s", got.State)
		}
		return err
	})
	admin := redis.NewClient(&redis.Options{Addr: r.Addr()})
	defer func() { _ = admin.Close() }()
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1mb").Err(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(17 * time.Second) //nolint:forbidigo // longer than it takes to believe a manager dead
	if err := admin.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	ended, err := client.Wait(t.Context(), c, s.ID)
	if err != nil || ended.State != task.Completed || ended.Counters != (task.Counters{}) || ended.Attempts != 1 {
		t.Errorf("%+v, %v; want completed in its first run", ended, err)
	}
	m.stop()
}

// A Redis that lost its content while the manager runs takes tasks of the manager's queues at once.
func TestRedisLosesItsContent(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "").start()
	admin := redis.NewClient(&redis.Options{Addr: r.Addr()})
	defer func() { _ = admin.Close() }()
	if err := admin.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	c := m.connect(t)
	s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "return", "value": 1})
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := client.Wait(t.Context(), c, s.ID); err != nil || ended.State != task.Completed {
		t.Errorf("%+v, %v", ended, err)
	}
	m.stop()
}
