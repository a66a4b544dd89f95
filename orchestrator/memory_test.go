package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A task that makes its process grow over memory_max is stopped in its middle, not at its end; the record says what limit,
// how much memory and which signal; after max_kills it is quarantined, and the next task runs as if nothing had happened.
func TestMemoryMax(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1, memory_max: 128MiB, max_kills: 2").start()
	c := straight(t, r)
	const longer = 20 * time.Second
	s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "leak", "bytes": 256 << 20, "ms": longer.Milliseconds()})
	if err != nil {
		t.Fatal(err)
	}
	ended, err := client.Wait(t.Context(), c, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	if ended.State != task.Quarantined || ended.Counters != (task.Counters{Kills: 2}) || ended.Run >= longer {
		t.Errorf("%s, %+v after %s; want quarantined after two kills in the middle of its run", ended.State, ended.Counters, ended.Run)
	}
	if f := ended.Fault; f == nil || f.Kind != fault.Memory || !strings.Contains(f.Message, "memory_max is 128MiB") || !strings.Contains(f.Message, "killed") {
		t.Errorf("the record says %v", ended.Fault)
	}
	if s, err = c.Submit(t.Context(), "misbehave", map[string]any{"do": "return", "value": 1}); err != nil {
		t.Fatal(err)
	}
	if ended, err = client.Wait(t.Context(), c, s.ID); err != nil || ended.State != task.Completed || ended.Counters != (task.Counters{}) {
		t.Errorf("the next task: %+v, %v", ended, err)
	}
	m.stop()
}

// A process that is over memory_soft finishes its task and is replaced.
func TestMemorySoft(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1, memory_soft: 128MiB").start()
	c := straight(t, r)
	s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "leak", "bytes": 200 << 20, "ms": 1000})
	if err != nil {
		t.Fatal(err)
	}
	ended, err := client.Wait(t.Context(), c, s.ID)
	if err != nil || ended.State != task.Completed || ended.Counters != (task.Counters{}) {
		t.Fatalf("%+v, %v; want completed at no cost", ended, err)
	}
	eventually(t, "the process is replaced", func() error {
		if !strings.Contains(m.output.String(), "ended: memory-soft") {
			return fmt.Errorf("it has not ended")
		}
		return nil
	})
	m.stop()
}

// The memory that counts is that of the whole process tree: a worker whose child holds the memory is killed as well.
func TestMemoryOfTheTree(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	const grow = `printf '{"type":"ready","v":1}\n'; read -r line; x=$(head -c 200000000 /dev/zero | tr '\0' x); sleep 60; echo "$x" >/dev/null`
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1, memory_max: 128MiB, max_kills: 1")
	m.replaceWorker(testenv.BuildBinaries(t, "plugins/exec")[0], "--name", "misbehave", "--", "/bin/bash", "-c", grow)
	m.start()
	c := straight(t, r)
	s, err := c.Submit(t.Context(), "misbehave", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	ended, err := client.Wait(t.Context(), c, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	if ended.State != task.Quarantined || ended.Fault == nil || ended.Fault.Kind != fault.Memory {
		t.Errorf("%s, %v; want quarantined for its memory", ended.State, ended.Fault)
	}
	m.stop()
}

// A queue's rate holds the starts of its tasks: a second's worth at once, then evenly.
func TestRate(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 2, slots: 8, buffer: 64, rate: 10/s").start()
	c := straight(t, r)
	var ids []task.ID
	for i := range 30 {
		s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "return", "value": i})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	ended, err := client.WaitAll(t.Context(), c, ids...)
	if err != nil {
		t.Fatal(err)
	}
	first, last := ended[0].Started, ended[0].Started
	for _, e := range ended {
		if e.Started.Before(first) {
			first = e.Started
		}
		if e.Started.After(last) {
			last = e.Started
		}
	}
	// Ten at once, then twenty at ten a second.
	if took := last.Sub(first); took < 1800*time.Millisecond {
		t.Errorf("30 tasks were started within %s at 10/s", took)
	}
	m.stop()
}
