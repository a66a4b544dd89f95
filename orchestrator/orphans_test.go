package orchestrator_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// sleepers returns the processes that sleep for exactly so many seconds.
func sleepers(t *testing.T, seconds string) (pids []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil && string(data) == "sleep\x00"+seconds+"\x00" {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// A child that a worker abandons in a session of its own is counted to the worker's memory all the same, and goes with it.
func TestMemoryOfAnOrphan(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	seconds := fmt.Sprintf("61.%d", rand.Uint32())
	grow := `printf '{"type":"ready","v":1}\n'; read -r line
		(setsid bash -c 'x=$(head -c 200000000 /dev/zero | tr "\0" x); sleep ` + seconds + `; echo "$x" >/dev/null' &)
		sleep 60`
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
	eventually(t, "the orphan is gone", func() error {
		if left := sleepers(t, seconds); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
	m.stop()
}

// A process that a worker abandons after it cleaned its environment is ended; the task that started it, the worker and its next task
// do not notice. One that kept its environment may stay as long as its worker does.
func TestOrphanOfNobody(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	hidden, kept := fmt.Sprintf("62.%d", rand.Uint32()), fmt.Sprintf("63.%d", rand.Uint32())
	abandon := `printf '{"type":"ready","v":1}\n'
		while read -r line; do
			case $line in *'"task"'*)
				run=${line#*\"run\":}; run=${run%%[,\}]*}
				env -i /usr/bin/setsid -f /bin/sleep ` + hidden + ` >/dev/null 2>&1
				setsid -f sleep ` + kept + ` >/dev/null 2>&1
				printf '{"type":"result","run":%s,"result":1}\n' "$run";;
			esac
		done`
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1, min_workers: 1")
	m.replaceWorker(testenv.BuildBinaries(t, "plugins/exec")[0], "--name", "misbehave", "--", "/bin/bash", "-c", strings.ReplaceAll(abandon, "/bin/sleep", "sleep"))
	m.start()
	c := straight(t, r)
	for n := range 2 {
		s, err := c.Submit(t.Context(), "misbehave", map[string]any{"n": n})
		if err != nil {
			t.Fatal(err)
		}
		if ended, err := client.Wait(t.Context(), c, s.ID); err != nil || ended.State != task.Completed {
			t.Fatalf("%+v, %v", ended, err)
		}
		eventually(t, "the one that hides is gone", func() error {
			if left := sleepers(t, hidden); len(left) > 0 {
				return fmt.Errorf("%v", left)
			}
			return nil
		})
		if left := sleepers(t, kept); len(left) != n+1 {
			t.Errorf("after task %d the others are %v", n, left)
		}
	}
	if got := strings.Count(m.output.String(), "ended: "); got != 0 {
		t.Errorf("%d workers ended", got)
	}
	m.stop()
	eventually(t, "nothing is left", func() error {
		if left := append(sleepers(t, kept), sleepers(t, hidden)...); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
}
