package orchestrator_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// lockRig is a Redis, perhaps a memcached, and managers that serve the queues "first" and "second" of one plugin.
type lockRig struct {
	t         *testing.T
	redis     *testenv.Redis
	memcached *testenv.Memcached // nil for locks in Redis
	tasks     *direct.Client
	ledger    string
	managers  int
}

// onLockStores runs a test with locks in memcached and with locks in Redis.
func onLockStores(t *testing.T, test func(t *testing.T, r *lockRig)) {
	t.Helper()
	for _, kind := range []string{"memcached", "redis"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, newLockRig(t, kind == "memcached"))
		})
	}
}

func newLockRig(t *testing.T, memcached bool) *lockRig {
	t.Helper()
	r := &lockRig{t: t, redis: testenv.StartRedis(t, testenv.RedisOptions{}), ledger: filepath.Join(t.TempDir(), "ledger")}
	if memcached {
		r.memcached = testenv.StartMemcached(t)
		r.settle()
	}
	r.tasks = straight(t, r.redis)
	return r
}

// settle makes memcached one that has been there for long: one that was just started gives no locks for some seconds.
func (r *lockRig) settle() {
	r.t.Helper()
	r.ask("set drover:lock-epoch 0 0 1\r\n1\r\n", "STORED")
}

// ask sends memcached a command and returns what it answers up to a line that begins with last.
func (r *lockRig) ask(command, last string) []string {
	r.t.Helper()
	conn, err := net.DialTimeout("tcp", r.memcached.Addr(), patience)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := conn.Write([]byte(command)); err != nil {
		r.t.Fatal(err)
	}
	var lines []string
	for scan := bufio.NewScanner(conn); scan.Scan(); {
		if strings.HasPrefix(scan.Text(), last) {
			return lines
		}
		lines = append(lines, scan.Text())
	}
	r.t.Fatalf("memcached answered %q to %q", lines, command)
	return nil
}

// locks are the names of the locks that lie in the store.
func (r *lockRig) locks() []string {
	r.t.Helper()
	if r.memcached == nil {
		rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr()})
		defer func() { _ = rdb.Close() }()
		names, err := rdb.Keys(r.t.Context(), "drover:lock:*").Result()
		if err != nil {
			r.t.Fatal(err)
		}
		return names
	}
	var names []string
	for _, line := range r.ask("lru_crawler metadump all\r\n", "END") {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "key="), " ")
		until, _, _ := strings.Cut(strings.TrimPrefix(rest, "exp="), " ")
		at, err := strconv.ParseInt(until, 10, 64)
		if err != nil {
			r.t.Fatalf("memcached lists %q", line)
		}
		if strings.HasPrefix(name, "drover%3Alock%3A") && (at < 0 || at > time.Now().Unix()) {
			names = append(names, name)
		}
	}
	return names
}

// manager makes a manager with these settings of its own and of its queues; it is not started.
func (r *lockRig) manager(managerSettings, first, second string) *manager {
	r.t.Helper()
	m := setUp(r.t, fmt.Sprintf("{address: %q}", r.redis.URL()), managerSettings, "")
	_, misbehave, _ := programs(r.t)
	r.managers++
	where := "{}"
	if r.memcached != nil {
		where = fmt.Sprintf("{memcached: [%q]}", r.memcached.Addr())
	}
	text := fmt.Sprintf(`
manager: {name: m%d, state_dir: %q, log: {level: debug}%s}
redis: {address: %q}
locks: %s
plugins:
  misbehave: {command: [%q], env: {MISBEHAVE_LEDGER: %q}}
queues:
  first: {plugin: misbehave%s}
  second: {plugin: misbehave%s}
`, r.managers, filepath.Join(m.dir, "state"), comma(managerSettings), r.redis.URL(), where, misbehave, r.ledger, comma(first), comma(second))
	if err := os.WriteFile(m.config, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return m
}

// submit submits an order of its own that has the lock.
func (r *lockRig) submit(queue, lock string, order map[string]any) task.ID {
	r.t.Helper()
	if lock != "" {
		order["lock"] = lock
	}
	s, err := r.tasks.Submit(r.t.Context(), queue, order, client.Unique(false))
	if err != nil {
		r.t.Fatal(err)
	}
	return s.ID
}

func (r *lockRig) ended(ids ...task.ID) []*task.Task {
	r.t.Helper()
	ended, err := client.WaitAll(r.t.Context(), r.tasks, ids...)
	if err != nil {
		r.t.Fatal(err)
	}
	return ended
}

// began waits until a run of a task is in the ledger, and returns the latest.
func (r *lockRig) began(id task.ID, attempt int) *lockRun {
	r.t.Helper()
	var found *lockRun
	eventually(r.t, fmt.Sprintf("run %d of %s", attempt, id), func() error {
		for _, run := range r.runs() {
			if run.id == id.String() && run.attempt == attempt {
				found = run
				return nil
			}
		}
		return errors.New("it has not begun")
	})
	return found
}

// waits waits until a manager shows that a task waits for its lock.
func (r *lockRig) waits(m *manager, id task.ID) {
	r.t.Helper()
	c, err := client.Dial("unix:" + m.socket())
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	eventually(r.t, fmt.Sprintf("%s waits for its lock", id), func() error {
		got, err := c.Get(r.t.Context(), id)
		if err != nil {
			return err
		}
		if n := m.queue(r.t, id.Queue).GetLockWaiting(); got.State != task.Held || n == 0 {
			return fmt.Errorf("it is %s, and %d wait", got.State, n)
		}
		return nil
	})
}

// lockRun is what the ledger says of one run of a task.
type lockRun struct {
	id, lock     string
	attempt, pid int
	from, to     int64 // nanoseconds of the machine's clock; to is when it last said something
	over         bool  // its handler returned
}

// runs reads the ledger, in the order of the runs' begins.
func (r *lockRig) runs() []*lockRun {
	r.t.Helper()
	data, err := os.ReadFile(r.ledger)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	byRun := map[string]*lockRun{}
	for line := range strings.Lines(string(data)) {
		const what, id, attempt, pid, at, lock, all = 0, 1, 2, 3, 5, 6, 7
		fields := strings.SplitN(strings.TrimSpace(line), " ", all)
		if len(fields) != all {
			r.t.Fatalf("the ledger has the line %q", line)
		}
		n, errN := strconv.Atoi(fields[attempt])
		process, errP := strconv.Atoi(fields[pid])
		when, errT := strconv.ParseInt(fields[at], 10, 64)
		if err := errors.Join(errN, errP, errT); err != nil {
			r.t.Fatal(err)
		}
		name := fields[id] + fields[attempt] + fields[pid]
		run := byRun[name]
		if run == nil {
			run = &lockRun{id: fields[id], lock: fields[lock], attempt: n, pid: process, from: when}
			byRun[name] = run
		}
		run.to = when
		run.over = run.over || fields[what] == "end" || fields[what] == "fail"
	}
	runs := make([]*lockRun, 0, len(byRun))
	for _, run := range byRun {
		runs = append(runs, run)
	}
	slices.SortFunc(runs, func(a, b *lockRun) int { return cmp.Compare(a.from, b.from) })
	return runs
}

// wantNoOverlap checks that no two runs under one lock were ever at work at once.
func (r *lockRig) wantNoOverlap() {
	r.t.Helper()
	last := map[string]*lockRun{}
	for _, run := range r.runs() {
		if before := last[run.lock]; before != nil && run.lock != `""` && before.to > run.from {
			r.t.Errorf("run %d of %s was at work %s after run %d of %s had begun, both under the lock %s", before.attempt, before.id,
				time.Duration(before.to-run.from), run.attempt, run.id, run.lock)
		}
		if before := last[run.lock]; before == nil || run.to > before.to {
			last[run.lock] = run
		}
	}
}

// wantNoLocks checks that the store has no lock any more.
func (r *lockRig) wantNoLocks() {
	r.t.Helper()
	if left := r.locks(); len(left) > 0 {
		r.t.Errorf("locks are left: %v", left)
	}
}
