package orchestrator_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// reloaded writes a configuration and makes the manager read it.
func (m *manager) reloaded(t *testing.T, control *client.ControlClient, text string) *apiv1.ReloadResponse {
	t.Helper()
	m.rewrite(text)
	answer, err := control.Reload(t.Context(), &apiv1.ReloadRequest{Who: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.GetNeedsRestart()) > 0 {
		t.Errorf("needs a restart: %q", answer.GetNeedsRestart())
	}
	return answer
}

// base is the configuration as it is written now.
func (m *manager) base(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(m.config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// left waits until a queue is not served any more at all.
func (m *manager) left(t *testing.T, queue string) {
	t.Helper()
	c := m.control(t)
	eventually(t, queue+" has been left", func() error {
		s, err := c.Status(t.Context(), &apiv1.StatusRequest{})
		if err == nil && slices.ContainsFunc(s.GetQueues(), func(q *apiv1.Queue) bool { return q.GetName() == queue }) {
			err = errors.New("it is there")
		}
		return err
	})
}

// unharmed wants tasks that completed and paid nothing for it.
func unharmed(t *testing.T, c client.Client, ids []task.ID) {
	t.Helper()
	for _, e := range waitFor(t, c, ids...) {
		if e.State != task.Completed || e.Counters != (task.Counters{}) {
			t.Errorf("%s: %s, %+v", e.ID, e.State, e.Counters)
		}
	}
}

// produce submits tasks to a queue from several producers; wait returns when all are in.
func produce(t *testing.T, c client.Client, queue string, tasks int) (wait func() []task.ID) {
	t.Helper()
	const producers = 4
	ids := make([][]task.ID, producers)
	var producing sync.WaitGroup
	for p := range producers {
		producing.Go(func() {
			for range tasks / producers {
				s, err := c.Submit(t.Context(), queue, map[string]any{}, client.Unique(false))
				if err != nil {
					t.Errorf("submit: %v", err)
					return
				}
				ids[p] = append(ids[p], s.ID)
			}
		})
	}
	return func() []task.ID {
		producing.Wait()
		return slices.Concat(ids...)
	}
}

// A queue and its plugin that the configuration gets are served without a restart, known to clients at once, while two thousand tasks
// of another queue run and notice nothing.
func TestReloadAddsAQueue(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "").start()
	c, control := straight(t, r), m.control(t)
	_, misbehave, _ := programs(t)
	wait := produce(t, c, "noop", 2000)
	text := strings.Replace(m.base(t), "plugins:\n", fmt.Sprintf("plugins:\n  another: {command: [%q]}\n", misbehave), 1)
	text += "  more: {plugin: another, max_workers: 3}\n"
	answer := m.reloaded(t, control, text)
	if len(answer.GetEffects()) != 1 || answer.GetEffects()[0].GetQueue() != "more" || answer.GetEffects()[0].GetAfter() != "another" {
		t.Errorf("%v", answer.GetEffects())
	}
	var more []task.ID
	for i := range 30 {
		s, err := c.Submit(t.Context(), "more", map[string]any{"do": "return", "value": i})
		if err != nil {
			t.Fatal(err)
		}
		more = append(more, s.ID)
	}
	unharmed(t, c, more)
	unharmed(t, c, wait())
	if q := m.queue(t, "more"); q.GetPlugin() != "another" || q.GetMaxWorkers() != 3 || q.GetState() != "ok" {
		t.Errorf("%v", q)
	}
	m.stop()
}

// A queue that the configuration loses gives its tasks back: those that run too long after drain_timeout, at the cost of an
// interruption, the others at no cost; and all run when the queue is there again. The other queue notices nothing.
func TestReloadRemovesAQueue(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "drain_timeout: 500ms", "max_workers: 2, buffer: 4").start()
	c, control := straight(t, r), m.control(t)
	with := m.base(t)
	without := strings.Replace(with, "  misbehave: {plugin: misbehave, max_workers: 2, buffer: 4}\n", "", 1)
	const running, all = 2, 40
	var ids []task.ID
	for i := range all {
		ids = append(ids, submitTo(t, c, map[string]any{"do": "sleep", "ms": sleepOf(i, running), "times": 1, "value": i}))
	}
	wait := produce(t, c, "noop", 2000)
	eventually(t, "two run and four wait here", func() error {
		if q := m.queue(t, "misbehave"); q.GetRunning() != running || q.GetHeld() != 4 {
			return fmt.Errorf("%d run, %d are held", q.GetRunning(), q.GetHeld())
		}
		return nil
	})
	began := time.Now()
	m.reloaded(t, control, without)
	if took := time.Since(began); took > 400*time.Millisecond {
		t.Logf("the answer took %s", took)
	}
	m.left(t, "misbehave")
	for i, id := range ids {
		got, err := c.Get(t.Context(), id)
		if err != nil || got.State != task.Waiting || got.Counters != (task.Counters{Interruptions: oneIf(i < running)}) {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	if pids := childrenOf(t, m.process.Process.Pid, "misbehave"); len(pids) > 0 {
		t.Errorf("workers are left: %v", pids)
	}
	late := submitTo(t, c, map[string]any{"do": "return", "value": "late"}) // it waits, as while no manager runs
	_, err := control.Explain(t.Context(), &apiv1.ExplainRequest{Queue: "misbehave"})
	codeIs(t, "the queue is none of this manager", err, connect.CodeNotFound)
	m.reloaded(t, control, with)
	for i, e := range waitFor(t, c, append(ids, late)...) {
		if e.State != task.Completed || e.Counters != (task.Counters{Interruptions: oneIf(i < running)}) {
			t.Errorf("%d: %s, %+v", i, e.State, e.Counters)
		}
	}
	unharmed(t, c, wait())
	m.stop()
}

// A queue that is added again while its last tasks still run is served at once: the old workers end their tasks, and new ones take what
// waits.
func TestReloadTakesBackAQueueThatIsBeingLeft(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "drain_timeout: 20s", "max_workers: 1").start()
	c, control := straight(t, r), m.control(t)
	with := m.base(t)
	slow := submitTo(t, c, map[string]any{"do": "sleep", "ms": 2500, "value": 1})
	eventually(t, "it runs", runs(t, m.connect(t), slow))
	m.reloaded(t, control, strings.Replace(with, "  misbehave: {plugin: misbehave, max_workers: 1}\n", "", 1))
	if q := m.queue(t, "misbehave"); q.GetState() != "leaving" || q.GetRunning() != 1 {
		t.Errorf("%v", q)
	}
	m.reloaded(t, control, with)
	unharmed(t, c, []task.ID{submitTo(t, c, map[string]any{"do": "return", "value": 2})})
	if got, err := c.Get(t.Context(), slow); err != nil || got.State != task.Running {
		t.Errorf("the slow one: %+v, %v", got, err)
	}
	unharmed(t, c, []task.ID{slow})
	m.stop()
}

// A task that waits for a lock that another queue has goes back at no cost when its own queue is left; the other queue keeps the lock.
func TestReloadRemovesAQueueWithLocks(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 2")
	m.rewrite(m.base(t) + "  stays: {plugin: misbehave, max_workers: 1}\n")
	m.start()
	c, control := straight(t, r), m.control(t)
	with := m.base(t)
	holder, err := c.Submit(t.Context(), "stays", map[string]any{"do": "sleep", "ms": 600000, "lock": "k", "value": 1})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs", runs(t, m.connect(t), holder.ID))
	waiter := submitTo(t, c, map[string]any{"do": "return", "lock": "k", "value": 2})
	eventually(t, "the other waits", func() error {
		if n := m.queue(t, "misbehave").GetLockWaiting(); n != 1 {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	m.reloaded(t, control, strings.Replace(with, "  misbehave: {plugin: misbehave, max_workers: 2}\n", "", 1))
	m.left(t, "misbehave")
	if l, err := control.Locks(t.Context(), &apiv1.LocksRequest{}); err != nil || len(l.GetHeld()) != 1 || len(l.GetWaiting()) > 0 {
		t.Errorf("%v, %v", l, err)
	}
	wantCounters(t, c, waiter, task.Counters{})
	if got, err := c.Get(t.Context(), waiter); err != nil || got.State != task.Waiting {
		t.Errorf("%+v, %v", got, err)
	}
	m.reloaded(t, control, with)
	if _, err := c.Cancel(t.Context(), holder.ID); err != nil {
		t.Fatal(err)
	}
	unharmed(t, c, []task.ID{waiter})
	m.stop()
}

// New options of a plugin reach its workers without a restart, and cost the tasks nothing.
func TestReloadChangesOptions(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "")
	program := testenv.BuildBinaries(t, "plugins/exec")[0]
	text := strings.Replace(m.base(t), "plugins:\n", fmt.Sprintf(
		"plugins:\n  words: {command: [%q, --name, words, --once, --, sh, -c, 'printf \"\\\"%%s\\\"\" \"$WORD\"'], options: {env: {WORD: one}}}\n", program), 1)
	text += "  words: {plugin: words, max_workers: 2, min_workers: 2}\n"
	m.rewrite(text)
	m.start()
	c, control := straight(t, r), m.control(t)
	say := func() string {
		s, err := c.Submit(t.Context(), "words", map[string]any{}, client.Unique(false))
		if err != nil {
			t.Fatal(err)
		}
		unharmed(t, c, []task.ID{s.ID})
		return string(waitFor(t, c, s.ID)[0].Result)
	}
	if got := say(); got != `"one"` {
		t.Fatalf("it says %s", got)
	}
	answer := m.reloaded(t, control, strings.Replace(text, "WORD: one", "WORD: two", 1))
	if e := answer.GetEffects(); len(e) != 1 || e[0].GetQueue() != "words" || !strings.Contains(e[0].GetAfter(), "options") || !strings.Contains(e[0].GetEffect(), "replaced") || strings.Contains(e[0].String(), "WORD") {
		t.Errorf("%v", e)
	}
	eventually(t, "new workers have the new options", func() error {
		for range 4 {
			if got := say(); got != `"two"` {
				return fmt.Errorf("it says %s", got)
			}
		}
		return nil
	})
	m.stop()
}

// A queue that changes its plugin goes on with the new one, while a task that runs ends in the old one.
func TestReloadChangesThePlugin(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "drain_timeout: 20s", "max_workers: 1").start()
	c, control := straight(t, r), m.control(t)
	_, misbehave, _ := programs(t)
	slow := submitTo(t, c, map[string]any{"do": "sleep", "ms": 2000, "value": 1})
	waits := submitTo(t, c, map[string]any{"do": "return", "value": 2})
	eventually(t, "it runs", runs(t, m.connect(t), slow))
	if _, err := control.Pause(t.Context(), &apiv1.PauseRequest{Queue: "misbehave", Here: true}); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(m.base(t), "plugins:\n", fmt.Sprintf("plugins:\n  other: {command: [%q], env: {A: b}}\n", misbehave), 1)
	text = strings.Replace(text, "misbehave: {plugin: misbehave", "misbehave: {plugin: other", 1)
	m.reloaded(t, control, text)
	if q := m.queue(t, "misbehave"); q.GetPlugin() != "other" || q.GetState() != "paused" {
		t.Errorf("%v", q)
	}
	if _, err := control.Resume(t.Context(), &apiv1.ResumeRequest{Queue: "misbehave"}); err != nil {
		t.Fatal(err)
	}
	unharmed(t, c, []task.ID{waits})
	if got, err := c.Get(t.Context(), slow); err != nil || got.State != task.Running {
		t.Errorf("the slow one: %+v, %v", got, err)
	}
	unharmed(t, c, []task.ID{slow})
	m.stop()
}

// A queue whose new plugin cannot be started is there, with its circuit open and the reason, and works as soon as a reload mends it.
func TestReloadWithAPluginThatCannotStart(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "").start()
	c, control := straight(t, r), m.control(t)
	_, misbehave, _ := programs(t)
	base := m.base(t) + "  more: {plugin: another}\n"
	with := func(command string) string {
		return strings.Replace(base, "plugins:\n", fmt.Sprintf("plugins:\n  another: {command: [%q]}\n", command), 1)
	}
	answer := m.reloaded(t, control, with("/nonexistent/worker"))
	if e := answer.GetEffects(); len(e) != 1 || !strings.Contains(e[0].GetEffect(), "/nonexistent/worker") {
		t.Errorf("%v", e)
	}
	if q := m.queue(t, "more"); q.GetState() != "circuit-open" || !strings.Contains(q.GetReason(), "/nonexistent/worker") {
		t.Errorf("%v", q)
	}
	m.reloaded(t, control, with(misbehave))
	s, err := c.Submit(t.Context(), "more", map[string]any{"do": "return", "value": 1})
	if err != nil {
		t.Fatal(err)
	}
	unharmed(t, c, []task.ID{s.ID})
	m.stop()
}

// Twenty reloads at random while tasks run in two queues, some of them two at once: no task is lost or pays for it but by an interruption,
// and the stop that comes right after the last one is clean and its report true.
func TestReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "drain_timeout: 5s", "max_workers: 2").start()
	c, control := straight(t, r), m.control(t)
	_, misbehave, noop := programs(t)
	random := rand.New(rand.NewPCG(3, 11)) //nolint:gosec // repeatable
	plain := m.base(t)
	change := func() string {
		text := plain
		if random.IntN(2) == 0 {
			text = strings.Replace(text, fmt.Sprintf("noop: {command: [%q]}", noop), fmt.Sprintf("noop: {command: [%q], env: {N: %q}}", noop, fmt.Sprint(random.IntN(9))), 1)
		}
		if random.IntN(2) == 0 {
			text = strings.Replace(text, "plugins:\n", fmt.Sprintf("plugins:\n  spare: {command: [%q]}\n", misbehave), 1)
			text += "  more: {plugin: spare}\n"
		}
		if random.IntN(3) == 0 {
			text = strings.Replace(text, "  misbehave: {plugin: misbehave, max_workers: 2}\n", "", 1)
		}
		return strings.Replace(text, "noop, max_workers: 2", fmt.Sprintf("noop, max_workers: %d", 1+random.IntN(4)), 1)
	}
	wait := produce(t, c, "noop", 4000)
	var other []task.ID
	for i := range 20 {
		other = append(other, submitTo(t, c, map[string]any{"do": "sleep", "ms": 40, "value": i}))
		m.rewrite(change())
		var both sync.WaitGroup
		for range 1 + random.IntN(2) {
			both.Go(func() {
				if _, err := control.Reload(t.Context(), &apiv1.ReloadRequest{Who: "test"}); err != nil {
					t.Errorf("reload: %v", err)
				}
			})
		}
		both.Wait()
	}
	m.rewrite(plain)
	if _, err := control.Reload(t.Context(), &apiv1.ReloadRequest{}); err != nil {
		t.Fatal(err)
	}
	unharmed(t, c, append(wait(), other...))
	last := submitTo(t, c, map[string]any{"do": "sleep", "ms": 1500, "value": "last"})
	eventually(t, "it runs", runs(t, m.connect(t), last))
	m.rewrite(strings.Replace(plain, "  misbehave: {plugin: misbehave, max_workers: 2}\n", "", 1))
	m.signal(syscall.SIGHUP)
	eventually(t, "it is being left", func() error {
		if q := m.queue(t, "misbehave"); q.GetState() != "leaving" {
			return fmt.Errorf("it is %s", q.GetState())
		}
		return nil
	})
	m.stop()
	if !strings.Contains(m.output.String(), "msg=stopped finished=1 returned=0 left=0") {
		t.Error("the report is not true")
	}
	unharmed(t, c, []task.ID{last})
}

// A reload that waits for a plugin which does not answer holds up no stop, and leaves nothing of its queue.
func TestStopDuringAReload(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "").start()
	text := strings.Replace(m.base(t), "plugins:\n", "plugins:\n  silent: {command: [/bin/sleep, \"600\"]}\n", 1)
	m.rewrite(text + "  more: {plugin: silent}\n")
	m.signal(syscall.SIGHUP)
	eventually(t, "the plugin is asked", func() error {
		if n := len(childrenOf(t, m.process.Process.Pid, "sleep")); n != 1 {
			return fmt.Errorf("%d processes", n)
		}
		return nil
	})
	m.stop()
	for _, want := range []string{"the configuration was not reloaded", "the manager stops", "msg=stopped finished=0 returned=0 left=0"} {
		if !strings.Contains(m.output.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if strings.Contains(m.output.String(), "configuration reloaded") {
		t.Error("the reload went on")
	}
}
