package orchestrator_test

import (
	"fmt"
	"math/rand/v2"
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

// Two hundred random changes, right and wrong ones, while thousands of tasks run: no task is lost or pays for it, the settings are one valid
// whole after each, every wrong one is refused with its field, and undo leads back to the start.
func TestChangesUnderLoad(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "").start()
	c, control := straight(t, r), m.control(t)
	const tasks, producers, changes = 4000, 4, 200
	ids := make([][]task.ID, producers)
	var producing sync.WaitGroup
	for p := range producers {
		producing.Go(func() {
			for range tasks / producers {
				s, err := c.Submit(t.Context(), "noop", map[string]any{}, client.Unique(false))
				if err != nil {
					t.Errorf("submit: %v", err)
					return
				}
				ids[p] = append(ids[p], s.ID)
			}
		})
	}
	random := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // repeatable
	version := uint64(1)
	refused := 0
	for range changes {
		change, wrong := anyChange(random)
		made, err := control.ChangeSettings(t.Context(), &apiv1.ChangeSettingsRequest{Who: "test", Changes: []*apiv1.SettingChange{change}})
		switch {
		case wrong:
			refused++
			codeIs(t, change.String(), err, connect.CodeInvalidArgument, change.GetName(), change.GetValue())
		case connect.CodeOf(err) == connect.CodeInvalidArgument && strings.Contains(err.Error(), "min_workers"): // not together with what is there
		case err != nil || made.GetVersion() != version+1:
			t.Fatalf("%v: version %d after %d, %v", change, made.GetVersion(), version, err)
		default:
			version++
		}
	}
	producing.Wait()
	for _, ended := range waitFor(t, c, slices.Concat(ids...)...) {
		if ended.State != task.Completed || ended.Counters != (task.Counters{}) {
			t.Errorf("%s: %s, %+v", ended.ID, ended.State, ended.Counters)
		}
	}
	list, err := control.Settings(t.Context(), &apiv1.SettingsRequest{})
	if err != nil || list.GetVersion() != version || list.GetUndoSteps() == 0 || refused == 0 {
		t.Fatalf("version %d, want %d; %d undo steps, %d refused; %v", list.GetVersion(), version, list.GetUndoSteps(), refused, err)
	}
	for range list.GetUndoSteps() {
		if _, err := control.UndoSettings(t.Context(), &apiv1.UndoSettingsRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	list, err = control.Settings(t.Context(), &apiv1.SettingsRequest{})
	if err != nil || slices.ContainsFunc(list.GetSettings(), func(s *apiv1.Setting) bool {
		return s.GetSource() == "live" || s.GetSource() == "saved" || s.GetValue() != s.GetFileValue()
	}) {
		t.Errorf("after all undos something differs from the file: %v", err)
	}
	m.stop()
}

// anyChange is a change of the queue "noop", and whether it is wrong whatever else holds.
func anyChange(r *rand.Rand) (change *apiv1.SettingChange, wrong bool) {
	right := map[string]func() string{
		"max_workers": func() string { return fmt.Sprint(1 + r.IntN(4)) }, "min_workers": func() string { return fmt.Sprint(r.IntN(3)) },
		"slots": func() string { return fmt.Sprint(1 + r.IntN(16)) }, "buffer": func() string { return fmt.Sprint(r.IntN(64)) },
		"worker_idle": func() string { return fmt.Sprintf("%ds", 1+r.IntN(5)) }, "worker_max_tasks": func() string { return fmt.Sprint(50 + r.IntN(1000)) },
	}
	names := []string{"max_workers", "min_workers", "slots", "buffer", "worker_idle", "worker_max_tasks"}
	name := names[r.IntN(len(names))]
	if r.IntN(3) == 0 {
		return &apiv1.SettingChange{Queue: "noop", Name: name, Value: []string{"-1", "x", "99999999999", "1.5"}[r.IntN(4)]}, true
	}
	return &apiv1.SettingChange{Queue: "noop", Name: name, Value: right[name]()}, false
}

// A live change takes hold at once: a worker more is being started before the next look.
func TestChangeTakesHoldAtOnce(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1").start()
	c, control := m.connect(t), m.control(t)
	for i := range 8 {
		submitTo(t, c, map[string]any{"do": "sleep", "ms": 60000, "value": i})
	}
	eventually(t, "one runs", func() error {
		if q := m.queue(t, "misbehave"); q.GetRunning() != 1 || q.GetHeld() != 7 {
			return fmt.Errorf("%d run, %d are held", q.GetRunning(), q.GetHeld())
		}
		return nil
	})
	began := time.Now()
	if _, err := control.ChangeSettings(t.Context(), &apiv1.ChangeSettingsRequest{Changes: []*apiv1.SettingChange{{Queue: "misbehave", Name: "max_workers", Value: "8"}}}); err != nil {
		t.Fatal(err)
	}
	for m.queue(t, "misbehave").GetWorkers() == 1 { // those that are being started are counted
		if time.Since(began) > patience {
			t.Fatal("no worker was started")
		}
	}
	const slack = time.Second // of a busy machine
	took := time.Since(began)
	if t.Logf("took hold after %s", took); took > 100*time.Millisecond+slack {
		t.Errorf("it took %s", took)
	}
}

// What stands still is shown as frozen, and who waits for a lock is listed with the one who has it.
func TestControlFrozenAndLocks(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 2").start()
	c, control := m.connect(t), m.control(t)
	holder := submitTo(t, c, map[string]any{"do": "sleep", "ms": 60000, "lock": "k", "value": 1})
	eventually(t, "it runs", runs(t, c, holder))
	waiter := submitTo(t, c, map[string]any{"do": "sleep", "ms": 60000, "lock": "k", "value": 2})
	eventually(t, "the other waits", func() error {
		l, err := control.Locks(t.Context(), &apiv1.LocksRequest{})
		if err != nil || len(l.GetHeld()) != 1 || len(l.GetWaiting()) != 1 {
			return fmt.Errorf("%v, %w", l, err)
		}
		held, waits := l.GetHeld()[0], l.GetWaiting()[0]
		if held.GetTaskId() != holder.String() || held.GetUntilMs() == 0 || !strings.HasPrefix(l.GetStore(), "redis") {
			t.Errorf("held: %v in %s", held, l.GetStore())
		}
		if waits.GetTaskId() != waiter.String() || waits.GetHolderTaskId() != holder.String() || waits.GetUntilMs() != 0 {
			t.Errorf("waits: %v", waits)
		}
		return nil
	})
	e, err := control.Explain(t.Context(), &apiv1.ExplainRequest{Queue: "misbehave"})
	if err != nil || !slices.ContainsFunc(e.GetLimits(), func(l string) bool { return strings.HasPrefix(l, "lock: 1 tasks wait") }) {
		t.Errorf("%v, %v", e.GetLimits(), err)
	}
	pid := int(m.staying(t)[0].GetPid())
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is shown as frozen", func() error {
		if w := m.staying(t); len(w) != 1 || !w[0].GetFrozen() {
			return fmt.Errorf("%v", w)
		}
		return nil
	})
	_, err = control.Stacks(t.Context(), &apiv1.StacksRequest{Worker: m.staying(t)[0].GetId()})
	codeIs(t, "stacks of one that stands still", err, connect.CodeFailedPrecondition, "stopped")
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}
