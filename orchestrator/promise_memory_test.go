package orchestrator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// hogs are workers that say something while a task runs and take 200 MB, each in another place of its process tree.
func hogs(t *testing.T) map[string][]string {
	t.Helper()
	_, misbehave, _ := programs(t)
	bridge := testenv.BuildBinaries(t, "plugins/exec")[0]
	script := func(start string) []string {
		const grow = `printf '{"type":"ready","v":1}\n'; read -r line; echo 'about to grow' >&2
%s python3 -c 'import time; x = b"x" * 200_000_000; time.sleep(60)' & wait`
		return []string{bridge, "--name", "misbehave", "--", "/bin/sh", "-c", fmt.Sprintf(grow, start)}
	}
	return map[string][]string{
		"the worker itself":            {"/bin/sh", "-c", `(while sleep 0.02; do echo 'about to grow' >&2; done) & exec "$0"`, misbehave},
		"a child":                      script(""),
		"a child in another session":   script("setsid"),
		"a child without environment":  script("env -i"),
		"a child of a child that left": script("setsid sh -c 'sleep 61 & exec \"$@\"' sh"),
	}
}

// memory_max acts within 500 ms of being crossed, in the middle of a task, on the sum of the process tree, and ends all of that. The
// task is waiting or taken again within 100 ms of the death, and its history says reason, limit, size, signal and last lines.
func TestMemoryMaxActsInTime(t *testing.T) {
	t.Parallel()
	for name, command := range hogs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testenv.StartRedis(t, testenv.RedisOptions{})
			m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "min_workers: 1, max_workers: 1, memory_max: 96MiB, max_kills: 2")
			m.replaceWorker(command...)
			m.start()
			c := straight(t, r)
			var killed, swept []time.Duration
			again := time.Hour
			late := watchLateness(t)
			for n := range 3 {
				pid := m.workerOf(t, "misbehave")
				id := submit(t, c, "misbehave", map[string]any{"do": "leak", "bytes": 200_000_000, "ms": 60_000, "value": n})
				charged := whenCharged(t, r, id)
				crossed, died, gone := watchTree(t, pid, hogLimit)
				killed, swept = append(killed, died.Sub(crossed)), append(swept, gone.Sub(crossed))
				again = min(again, (<-charged).Sub(died))
				wantOverrun(t, c, id)
			}
			late.within(t, "from the limit to the death", slices.Max(killed), 500*time.Millisecond)
			late.within(t, "from the limit to the end of the whole tree", slices.Max(swept), 500*time.Millisecond)
			// The best of three: a busy machine is late now and then, a manager that waits for something is late each time.
			late.within(t, "from the death to the task's next place", again, 100*time.Millisecond)
			m.stop()
		})
	}
}

const hogLimit = 96 << 20

// wantOverrun waits for the end of a task and checks that its history has two kills with all that is known of them.
func wantOverrun(t *testing.T, c client.Client, id task.ID) {
	t.Helper()
	ended, err := client.Wait(t.Context(), c, id)
	if err != nil {
		t.Fatal(err)
	}
	if ended.State != task.Quarantined || ended.Counters != (task.Counters{Kills: 2}) || len(ended.History) != 2 {
		t.Fatalf("%s, %+v, %d runs remembered; want quarantined after two kills", ended.State, ended.Counters, len(ended.History))
	}
	for _, a := range ended.History {
		if a.End != task.EndKilled || a.Exit != string(job.ExitMemoryMax) || a.Fault != fault.Memory || a.Signal != "killed" ||
			a.Limit != hogLimit || a.RSS < hogLimit || a.RSS > 8*hogLimit || !slices.Contains(a.Tail, "about to grow") {
			t.Errorf("the history says %+v", a)
		}
		if !strings.Contains(a.Message, "memory_max is 96MiB") {
			t.Errorf("the message is %q", a.Message)
		}
	}
}

// watchTree looks at a worker and its descendants until they are gone, and returns when their memory was seen to be over the limit,
// when the worker was gone, and when all of them were. That the limit was crossed at all is for the history to say.
func watchTree(t *testing.T, pid int, limit int64) (crossed, died, gone time.Time) {
	t.Helper()
	const look = 3 * time.Millisecond
	members := map[int]struct{}{}
	for deadline := time.Now().Add(patience); gone.IsZero(); time.Sleep(look) { //nolint:forbidigo // between two looks at real processes
		if time.Now().After(deadline) {
			t.Fatalf("over the limit at %s, dead at %s; of the processes %v some are left", crossed, died, members)
		}
		size := int64(0)
		for _, p := range reaper.Tree(pid) {
			members[p.PID] = struct{}{}
			size += p.RSS
		}
		now := time.Now()
		if size >= limit && crossed.IsZero() {
			crossed = now
		}
		if died.IsZero() && !alive(pid) {
			died = now
		}
		for member := range members {
			if !alive(member) {
				delete(members, member)
			}
		}
		if !died.IsZero() && len(members) == 0 {
			gone = now
		}
	}
	if crossed.IsZero() { // the manager saw it between two looks
		crossed = died
	}
	return crossed, died, gone
}

// whenCharged yields the time at which a task was first seen in Redis with a kill in its counters: it was put back by then.
func whenCharged(t *testing.T, r *testenv.Redis, id task.ID) <-chan time.Time {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.Addr()})
	seen := make(chan time.Time, 1)
	done := make(chan struct{})
	ctx := t.Context()
	go func() {
		defer close(done)
		defer func() { _ = rdb.Close() }()
		defer close(seen)
		for ctx.Err() == nil {
			if rdb.HGet(ctx, task.KeysOf(id.Queue).Task(id.Key), "drover_kills").Val() == "1" {
				seen <- time.Now()
				return
			}
			time.Sleep(time.Millisecond) //nolint:forbidigo // between two looks
		}
	}()
	t.Cleanup(func() { <-done })
	return seen
}
