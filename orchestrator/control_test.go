package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// control returns a client of the manager's ControlService.
func (m *manager) control(t *testing.T) *client.ControlClient {
	t.Helper()
	c, err := client.Control("unix:" + m.socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// submitTo submits to the queue "misbehave".
func submitTo(t *testing.T, c client.Client, payload map[string]any, options ...client.Option) task.ID {
	t.Helper()
	s, err := c.Submit(t.Context(), "misbehave", payload, options...)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

func waitFor(t *testing.T, c client.Client, ids ...task.ID) []*task.Task {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended, err := client.WaitAll(ctx, c, ids...)
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

func codeIs(t *testing.T, what string, err error, want connect.Code, parts ...string) {
	t.Helper()
	if connect.CodeOf(err) != want {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q in it", what, err, part)
		}
	}
}

// Dead letters of a running manager are listed with what they died of, and retried, singly or all that died of one thing; the retried
// ones run again at once, and count anew. Others are dropped, and are gone.
func TestControlTasks(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 2").start()
	c, control := m.connect(t), m.control(t)
	var ids []task.ID
	for i := range 6 {
		ids = append(ids, submitTo(t, c, map[string]any{"do": "permanent", "value": i}))
	}
	waitFor(t, c, ids...)
	list, err := control.ListTasks(t.Context(), &apiv1.ListTasksRequest{Queue: "misbehave", State: taskv1.State_STATE_DEAD, Limit: 4, WithPayload: true})
	if err != nil || len(list.GetTasks()) != 4 || list.GetTotal() != 6 || list.GetNextPageToken() == "" || !strings.Contains(string(list.GetTasks()[0].GetPayload()), "permanent") {
		t.Fatalf("%v, %v", list, err)
	}
	if letter, err := c.Get(t.Context(), ids[0]); err != nil || !strings.Contains(string(letter.Payload), "permanent") || len(waitFor(t, c, ids[0])[0].Payload) > 0 {
		t.Errorf("a dead letter looks like %+v, %v; want it with its payload, which who waits for it has and is not sent", letter, err)
	}
	more, err := control.ListTasks(t.Context(), &apiv1.ListTasksRequest{Queue: "misbehave", State: taskv1.State_STATE_DEAD, PageToken: list.GetNextPageToken()})
	if err != nil || len(more.GetTasks()) != 2 || more.GetNextPageToken() != "" || more.GetTasks()[0].GetFault().GetKind() != taskv1.FaultKind_FAULT_KIND_FAILED {
		t.Fatalf("%v, %v", more, err)
	}
	none := task.ID{Queue: "misbehave", Key: "none"}.String()
	retried, err := control.RetryTasks(t.Context(), &apiv1.RetryTasksRequest{Tasks: &apiv1.TaskSelection{Ids: []string{none, ids[0].String()}}})
	if err != nil || retried.GetChanged() != 1 || len(retried.GetChanges()) != 2 || retried.GetChanges()[0].GetRefused() == "" || retried.GetChanges()[1].GetState() != taskv1.State_STATE_WAITING {
		t.Fatalf("%v, %v", retried, err)
	}
	if again := waitFor(t, c, ids[0])[0]; again.State != task.Dead || again.Attempts != 1 || len(again.History) != 3 || again.History[1].End != task.EndRetried {
		t.Errorf("retried, it ended as %+v", again)
	}
	timeouts := &apiv1.TaskSelection{DeadOfQueue: "misbehave", FaultKind: taskv1.FaultKind_FAULT_KIND_TIMEOUT}
	if all, err := control.RetryTasks(t.Context(), &apiv1.RetryTasksRequest{Tasks: timeouts}); err != nil || all.GetChanged() != 0 {
		t.Errorf("none died of a timeout: %v, %v", all, err)
	}
	chosen := &apiv1.TaskSelection{Dead: &apiv1.DeadSelection{Queue: "misbehave", Filter: &apiv1.DeadFilter{Reason: "dead", Match: "as ASKED"}, DryRun: true}}
	if all, err := control.RetryTasks(t.Context(), &apiv1.RetryTasksRequest{Tasks: chosen}); err != nil || all.GetChanged() != 6 || all.GetNextPageToken() != "" {
		t.Errorf("a dry run: %v, %v", all, err)
	}
	dropped, err := control.DropTasks(t.Context(), &apiv1.DropTasksRequest{Tasks: &apiv1.TaskSelection{DeadOfQueue: "misbehave"}})
	if err != nil || dropped.GetChanged() != 6 || len(dropped.GetChanges()) != 0 {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	if q := m.queue(t, "misbehave"); q.GetDead() != 0 {
		t.Errorf("%d are still dead", q.GetDead())
	}
	if got, err := c.Get(t.Context(), ids[1]); err != nil || got.State != task.Dropped {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = control.ListTasks(t.Context(), &apiv1.ListTasksRequest{Queue: "misbehave", State: taskv1.State_STATE_COMPLETED})
	codeIs(t, "completed", err, connect.CodeInvalidArgument, "record")
	_, err = control.ListTasks(t.Context(), &apiv1.ListTasksRequest{Queue: "misbehav", State: taskv1.State_STATE_DEAD})
	codeIs(t, "no such queue", err, connect.CodeNotFound, "did you mean misbehave?")
	_, err = control.DropTasks(t.Context(), &apiv1.DropTasksRequest{})
	codeIs(t, "nothing named", err, connect.CodeInvalidArgument)
	_, err = control.DropTasks(t.Context(), &apiv1.DropTasksRequest{Tasks: &apiv1.TaskSelection{Ids: []string{"x"}}})
	codeIs(t, "no ID", err, connect.CodeInvalidArgument, "not a task ID")
	_, err = control.DropTasks(t.Context(), &apiv1.DropTasksRequest{Tasks: &apiv1.TaskSelection{Ids: []string{none}, DeadOfQueue: "misbehave"}})
	codeIs(t, "both", err, connect.CodeInvalidArgument)
	m.stop()
}

// A paused queue takes nothing while what runs goes on: for all managers, or in one alone, which is not kept in Redis. Resume undoes
// both, and the tasks run at once.
func TestControlPause(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1, buffer: 0").start()
	c, control := m.connect(t), m.control(t)
	admin := redis.NewClient(&redis.Options{Addr: r.Addr()})
	defer func() { _ = admin.Close() }()
	for _, here := range []bool{false, true} {
		running := submitTo(t, c, map[string]any{"do": "sleep", "ms": 300, "value": fmt.Sprint("running", here)})
		eventually(t, "it runs", runs(t, c, running))
		if _, err := control.Pause(t.Context(), &apiv1.PauseRequest{Queue: "misbehave", Here: here}); err != nil {
			t.Fatal(err)
		}
		next := submitTo(t, c, map[string]any{"do": "return", "value": fmt.Sprint("next", here)})
		if ended := waitFor(t, c, running)[0]; ended.State != task.Completed {
			t.Errorf("what ran ended as %+v", ended)
		}
		q := m.queue(t, "misbehave")
		if want := map[bool]string{false: "all managers", true: "this manager"}[here]; q.GetState() != "paused" || !strings.Contains(q.GetReason(), want) || q.GetWaiting() != 1 {
			t.Errorf("the queue is %s, %s, %d wait", q.GetState(), q.GetReason(), q.GetWaiting())
		}
		if kept := admin.Exists(t.Context(), "asynq:{misbehave}:paused").Val() == 1; kept == here {
			t.Errorf("paused in Redis: %v, here: %v", kept, here)
		}
		if got, err := c.Get(t.Context(), next); err != nil || got.State != task.Waiting {
			t.Errorf("the next is %+v, %v", got, err)
		}
		if _, err := control.Resume(t.Context(), &apiv1.ResumeRequest{Queue: "misbehave"}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		waitFor(t, c, next)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("resumed, the next took %s", took)
		}
		if q := m.queue(t, "misbehave"); q.GetState() != "ok" {
			t.Errorf("the queue is %s", q.GetState())
		}
	}
	_, err := control.Pause(t.Context(), &apiv1.PauseRequest{Queue: "none"})
	codeIs(t, "no such queue", err, connect.CodeNotFound)
	m.stop()
}

func runs(t *testing.T, c client.Client, id task.ID) func() error {
	t.Helper()
	return func() error {
		got, err := c.Get(t.Context(), id)
		if err == nil && (got.State != task.Running || got.Manager == "") {
			err = fmt.Errorf("it is %s", got.State)
		}
		return err
	}
}

// The status names the tasks in a worker and its limit; a worker that is killed costs its task an interruption only, and is counted
// by its reason; its output is shown and followed; its stacks are told.
func TestControlWorkers(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1, memory_max: 1GiB").start()
	c, control := m.connect(t), m.control(t)
	id := submitTo(t, c, map[string]any{"do": "sleep", "ms": 1500, "value": 1})
	eventually(t, "it runs", runs(t, c, id))
	s, err := control.Status(t.Context(), &apiv1.StatusRequest{})
	if err != nil || len(s.GetWorkers()) != 1 {
		t.Fatalf("%v, %v", s, err)
	}
	w := s.GetWorkers()[0]
	if !slices.Equal(w.GetTaskIds(), []string{id.String()}) || w.GetMemoryMaxBytes() != 1<<30 || w.GetFrozen() || w.GetLeaving() != "" {
		t.Errorf("%v", w)
	}
	stacks, err := control.Stacks(t.Context(), &apiv1.StacksRequest{Worker: w.GetId()})
	if err != nil || !strings.Contains(stacks.GetText(), "goroutine") {
		t.Errorf("%.100s, %v", stacks.GetText(), err)
	}
	following, err := control.Logs(t.Context(), &apiv1.LogsRequest{Worker: w.GetId(), Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	killed, err := control.Kill(t.Context(), &apiv1.KillRequest{Worker: w.GetId()})
	if err != nil || killed.GetPid() != w.GetPid() || !slices.Equal(killed.GetTaskIds(), w.GetTaskIds()) {
		t.Fatalf("%v, %v", killed, err)
	}
	for following.Receive() {
	}
	if err := following.Err(); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("following its output ended with %v", err)
	}
	_ = following.Close()
	ended := waitFor(t, c, id)[0]
	if ended.State != task.Completed || ended.Counters != (task.Counters{Interruptions: 1}) {
		t.Errorf("%+v", ended)
	}
	if q := m.queue(t, "misbehave"); q.GetExits()["operator"] != 1 {
		t.Errorf("exits %v", q.GetExits())
	}
	id = submitTo(t, c, map[string]any{"do": "print", "bytes": 100, "value": 2})
	waitFor(t, c, id)
	s, err = control.Status(t.Context(), &apiv1.StatusRequest{})
	if err != nil || len(s.GetWorkers()) != 1 {
		t.Fatalf("%v, %v", s, err)
	}
	second := s.GetWorkers()[0]
	eventually(t, "its output is shown", func() error {
		logs, err := control.Logs(t.Context(), &apiv1.LogsRequest{Worker: second.GetId(), Lines: 1})
		if err != nil {
			return err
		}
		defer func() { _ = logs.Close() }()
		if !logs.Receive() || len(logs.Msg().GetLines()) != 1 || !strings.Contains(logs.Msg().GetLines()[0], "xxxx") {
			return fmt.Errorf("%v, %w", logs.Msg(), logs.Err())
		}
		return nil
	})
	restarted, err := control.Restart(t.Context(), &apiv1.RestartRequest{Queue: "misbehave"})
	if err != nil || restarted.GetWorkers() != 1 {
		t.Errorf("%v, %v", restarted, err)
	}
	eventually(t, "it is replaced", func() error {
		s, err := control.Status(t.Context(), &apiv1.StatusRequest{})
		if err == nil && slices.ContainsFunc(s.GetWorkers(), func(w *apiv1.Worker) bool { return w.GetId() == second.GetId() }) {
			err = errors.New("it is still there")
		}
		return err
	})
	for _, follow := range []bool{false, true} { // what it wrote is kept, and how it ended
		logs, err := control.Logs(t.Context(), &apiv1.LogsRequest{Worker: second.GetId(), Follow: follow})
		if err != nil {
			t.Fatal(err)
		}
		var lines, end string
		for logs.Receive() {
			lines, end = lines+strings.Join(logs.Msg().GetLines(), "\n"), end+logs.Msg().GetEnded()
		}
		if !strings.Contains(lines, "xxxx") || !strings.Contains(end, "ended: operator, exit code 0 (queue misbehave, at 2") || logs.Err() != nil {
			t.Errorf("of an ended worker, follow %t: %q, %q, %v", follow, lines, end, logs.Err())
		}
		_ = logs.Close()
	}
	_, err = control.Kill(t.Context(), &apiv1.KillRequest{Worker: 999})
	codeIs(t, "no such worker", err, connect.CodeNotFound, "999")
	_, err = control.Stacks(t.Context(), &apiv1.StacksRequest{Worker: w.GetId()})
	codeIs(t, "stacks of one that is gone", err, connect.CodeNotFound)
	_, err = control.Restart(t.Context(), &apiv1.RestartRequest{})
	codeIs(t, "restart nothing", err, connect.CodeInvalidArgument)
	m.stop()
}

// Settings change while tasks run: all or none, only for the version that was seen, said beforehand with what follows, taken back to the
// start; saved ones outlive a restart, and a broken file is told and put aside.
func TestControlSettings(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 4, min_workers: 4").start()
	control := m.control(t)
	setting := func(name string) *apiv1.Setting {
		t.Helper()
		s, err := control.Settings(t.Context(), &apiv1.SettingsRequest{Queue: "misbehave"})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(s.GetSettings(), func(s *apiv1.Setting) bool { return s.GetName() == name })
		if i < 0 {
			t.Fatalf("there is no %s", name)
		}
		return s.GetSettings()[i]
	}
	eventually(t, "four workers run", func() error {
		if n := m.queue(t, "misbehave").GetWorkers(); n != 4 || len(m.staying(t)) != 4 {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	change := &apiv1.ChangeSettingsRequest{Who: "kim", DryRun: true, Changes: []*apiv1.SettingChange{
		{Queue: "misbehave", Name: "max_workers", Value: "2"}, {Queue: "misbehave", Name: "min_workers", Value: "0"}, {Queue: "manager", Name: "drain_timeout", Value: "7s"},
	}}
	made, err := control.ChangeSettings(t.Context(), change)
	if err != nil || len(made.GetEffects()) != 3 || made.GetEffects()[1].GetEffect() != "2 workers drain" || setting("max_workers").GetValue() != "4" {
		t.Fatalf("%v, %v", made, err)
	}
	change.DryRun, change.IfVersion = false, made.GetVersion()+1
	_, err = control.ChangeSettings(t.Context(), change)
	codeIs(t, "another version", err, connect.CodeFailedPrecondition, "version")
	change.IfVersion = made.GetVersion()
	if _, err = control.ChangeSettings(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two workers are left", func() error {
		if n := len(m.staying(t)); n != 2 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	eventually(t, "it is logged with who", m.wrote(`setting=max_workers from=4 to=2`, fmt.Sprintf("kim (uid %d, pid %d)", os.Getuid(), os.Getpid())))
	if s := setting("max_workers"); s.GetSource() != "live" || s.GetFileValue() != "4" || s.GetTakes() != "now" {
		t.Errorf("%v", s)
	}
	_, err = control.ChangeSettings(t.Context(), &apiv1.ChangeSettingsRequest{Changes: []*apiv1.SettingChange{
		{Queue: "misbehave", Name: "buffer", Value: "3"}, {Queue: "misbehave", Name: "slots", Value: "none"}, {Queue: "misbehave", Name: "slotss", Value: "1"},
	}})
	codeIs(t, "wrong", err, connect.CodeInvalidArgument, "slotss")
	if setting("buffer").GetValue() != "16" {
		t.Error("a part of a refused change was made")
	}
	saved, err := control.SaveSettings(t.Context(), &apiv1.SaveSettingsRequest{Who: "kim"})
	if err != nil || saved.GetSettings() != 3 || saved.GetPath() != filepath.Join(m.dir, "state", "settings.yaml") {
		t.Fatalf("%v, %v", saved, err)
	}
	if undone, err := control.UndoSettings(t.Context(), &apiv1.UndoSettingsRequest{}); err != nil || len(undone.GetEffects()) != 3 || setting("max_workers").GetSource() != "file" || setting("max_workers").GetSavedValue() != "2" {
		t.Errorf("%v, %v, %v", undone, err, setting("max_workers"))
	}
	_, err = control.UndoSettings(t.Context(), &apiv1.UndoSettingsRequest{})
	codeIs(t, "nothing to undo", err, connect.CodeFailedPrecondition)
	m.stop()

	m.start()
	if s := setting("max_workers"); s.GetSource() != "saved" || s.GetValue() != "2" || s.GetFileValue() != "4" {
		t.Errorf("after a restart: %v", s)
	}
	m.stop()

	if err := os.WriteFile(saved.GetPath(), []byte("queues: [broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.start()
	status, err := control.Status(t.Context(), &apiv1.StatusRequest{})
	if err != nil || len(status.GetManager().GetWarnings()) != 1 || !strings.Contains(status.GetManager().GetWarnings()[0], "settings.yaml") || setting("max_workers").GetSource() != "file" {
		t.Errorf("with a broken file: %v, %v", status.GetManager(), err)
	}
	if _, err := control.SaveSettings(t.Context(), &apiv1.SaveSettingsRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(saved.GetPath() + ".broken"); err != nil {
		t.Error(err)
	}
	if status, err := control.Status(t.Context(), &apiv1.StatusRequest{}); err != nil || len(status.GetManager().GetWarnings()) != 0 {
		t.Errorf("after a save: %v, %v", status.GetManager(), err)
	}
	m.stop()
}

// staying returns the workers of the queue "misbehave" that stay.
func (m *manager) staying(t *testing.T) []*apiv1.Worker {
	t.Helper()
	s, err := m.control(t).Status(t.Context(), &apiv1.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(s.GetWorkers(), func(w *apiv1.Worker) bool { return w.GetQueue() != "misbehave" || w.GetState() == "draining" })
}

// A queue explains what limits it, and what was decided lately.
func TestControlExplain(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1, buffer: 2").start()
	c, control := m.connect(t), m.control(t)
	for i := range 5 {
		submitTo(t, c, map[string]any{"do": "sleep", "ms": 20000, "value": i})
	}
	eventually(t, "two are held", func() error {
		if n := m.queue(t, "misbehave").GetHeld(); n != 2 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	e, err := control.Explain(t.Context(), &apiv1.ExplainRequest{Queue: "misbehave"})
	limits := strings.Join(e.GetLimits(), "\n")
	if err != nil || !strings.Contains(limits, "max_workers is 1") || !strings.Contains(limits, "buffer:") || e.GetNow().GetWaiting() != 2 || e.GetNow().GetReady() != 1 ||
		len(e.GetBefore()) == 0 || e.GetBefore()[0].GetStart() != 1 || e.GetBefore()[0].GetReason() == "" {
		t.Errorf("%v, %v", e, err)
	}
	if _, err := control.Pause(t.Context(), &apiv1.PauseRequest{Queue: "misbehave"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pause is a limit", func() error {
		e, err := control.Explain(t.Context(), &apiv1.ExplainRequest{Queue: "misbehave"})
		if err == nil && !strings.HasPrefix(strings.Join(e.GetLimits(), "\n"), "paused: ") {
			err = fmt.Errorf("%v", e.GetLimits())
		}
		return err
	})
	_, err = control.Explain(t.Context(), &apiv1.ExplainRequest{Queue: "none"})
	codeIs(t, "no such queue", err, connect.CodeNotFound)
}

// Reload reads the file again, as SIGHUP does, says what follows and what only a restart can change; a file that is not sound changes
// nothing. Live changes stay.
func TestControlReload(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1").start()
	control := m.control(t)
	if _, err := control.ChangeSettings(t.Context(), &apiv1.ChangeSettingsRequest{Changes: []*apiv1.SettingChange{{Queue: "misbehave", Name: "buffer", Value: "3"}}}); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(m.config)
	if err != nil {
		t.Fatal(err)
	}
	m.rewrite(strings.Replace(string(good), "max_workers: 1", "max_workers: 0", 1))
	_, err = control.Reload(t.Context(), &apiv1.ReloadRequest{})
	codeIs(t, "a bad file", err, connect.CodeFailedPrecondition, "max_workers", "old settings stay")
	text := strings.Replace(string(good), "max_workers: 1", "max_workers: 5, buffer: 9", 1)
	text = strings.Replace(text, "name: test,", "name: other,", 1) + "  more: {plugin: noop}\n"
	m.rewrite(text)
	again, err := control.Reload(t.Context(), &apiv1.ReloadRequest{Who: "kim"})
	if err != nil || len(again.GetEffects()) != 2 || again.GetEffects()[1].GetName() != "max_workers" || again.GetEffects()[1].GetAfter() != "5" {
		t.Errorf("%v, %v", again, err)
	}
	if e := again.GetEffects()[0]; e.GetQueue() != "more" || e.GetName() != "plugin" || e.GetBefore() != "" || e.GetAfter() != "noop" || e.GetEffect() == "" {
		t.Errorf("the queue that comes: %v", e)
	}
	if want := []string{"manager.name: test -> other"}; !slices.Equal(again.GetNeedsRestart(), want) {
		t.Errorf("needs a restart: %q, want %q", again.GetNeedsRestart(), want)
	}
	if undone, err := control.UndoSettings(t.Context(), &apiv1.UndoSettingsRequest{}); err != nil || undone.GetEffects()[0].GetAfter() != "9" {
		t.Errorf("undo after the reload: %v, %v", undone, err)
	}
	m.stop()
}

// Who watches sees tasks, workers, queues and settings, each once, and only what was asked for.
func TestControlWatch(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1").start()
	c, control := m.connect(t), m.control(t)
	watch := func(request *apiv1.WatchRequest) func(what string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		t.Cleanup(cancel)
		stream, err := control.Watch(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		return func(what string) {
			t.Helper()
			for !slices.Contains(seen, what) {
				if !stream.Receive() {
					t.Fatalf("%q did not come, but %q: %v", what, seen, stream.Err())
				}
				seen = append(seen, inShort(stream.Msg()))
			}
		}
	}
	all, other := watch(&apiv1.WatchRequest{}), watch(&apiv1.WatchRequest{Queue: "noop"})
	id := submitTo(t, c, map[string]any{"do": "return", "value": 1})
	all("worker misbehave started")
	all("queue misbehave decision: 1 start: work for 1 more slots than 0 processes with 0 have")
	all("task " + id.String() + " completed")
	if _, err := control.ChangeSettings(t.Context(), &apiv1.ChangeSettingsRequest{Changes: []*apiv1.SettingChange{{Queue: "misbehave", Name: "buffer", Value: "3"}}}); err != nil {
		t.Fatal(err)
	}
	all("queue misbehave settings: buffer 16 -> 3")
	if _, err := control.Pause(t.Context(), &apiv1.PauseRequest{Queue: "noop", Here: true}); err != nil {
		t.Fatal(err)
	}
	all("queue noop paused: in this manager")
	other("queue noop paused: in this manager")
	if _, err := control.Resume(t.Context(), &apiv1.ResumeRequest{Queue: "noop"}); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Kill(t.Context(), &apiv1.KillRequest{Worker: m.staying(t)[0].GetId()}); err != nil {
		t.Fatal(err)
	}
	all("worker misbehave ended operator")
	stream, err := control.Watch(t.Context(), &apiv1.WatchRequest{Queue: "misbehave", TaskId: id.String()})
	if err == nil {
		stream.Receive()
		err = stream.Err()
	}
	codeIs(t, "both", err, connect.CodeInvalidArgument)
	m.signal(syscall.SIGTERM)
	if code := m.wait(); code != 0 {
		t.Errorf("with a stream open the manager ended with %d", code)
	}
}

func inShort(m *apiv1.WatchResponse) string {
	switch x := m.GetHappened().(type) {
	case *apiv1.WatchResponse_Task:
		return "task " + x.Task.GetId() + " " + task.State(x.Task.GetState()).String()
	case *apiv1.WatchResponse_Worker:
		return strings.TrimSpace(fmt.Sprintf("worker %s %s %s", x.Worker.GetQueue(), x.Worker.GetEvent(), x.Worker.GetReason()))
	case *apiv1.WatchResponse_Queue:
		return fmt.Sprintf("queue %s %s: %s", x.Queue.GetQueue(), x.Queue.GetEvent(), x.Queue.GetText())
	default:
		return m.String()
	}
}

// While Redis is frozen everything that does not need it answers within milliseconds, and the rest says within a second that Redis does
// not answer.
func TestControlWhileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1, min_workers: 1").start()
	control := m.control(t)
	eventually(t, "a worker runs", func() error {
		if len(m.staying(t)) == 0 {
			return errors.New("none does")
		}
		return nil
	})
	w := m.staying(t)[0].GetId()
	r.Freeze()
	thawed := false
	defer func() {
		if !thawed {
			r.Thaw()
		}
	}()
	const quick, slack = 60 * time.Millisecond, 500 * time.Millisecond // slack of a busy machine
	ctx := t.Context()
	sel := &apiv1.TaskSelection{Ids: []string{"misbehave:x"}}
	for _, c := range []struct {
		name   string
		within time.Duration
		broker bool
		call   func() error
	}{
		{"status", quick, false, func() error {
			s, err := control.Status(ctx, &apiv1.StatusRequest{})
			if err == nil && s.GetManager().GetBrokerError() == "" {
				err = errors.New("it does not say that Redis is away")
			}
			return err
		}},
		{"explain", quick, false, func() error { _, err := control.Explain(ctx, &apiv1.ExplainRequest{Queue: "misbehave"}); return err }},
		{"locks", quick, false, func() error { _, err := control.Locks(ctx, &apiv1.LocksRequest{}); return err }},
		{"settings", quick, false, func() error { _, err := control.Settings(ctx, &apiv1.SettingsRequest{}); return err }},
		{"set", quick, false, func() error {
			_, err := control.ChangeSettings(ctx, &apiv1.ChangeSettingsRequest{Changes: []*apiv1.SettingChange{{Queue: "misbehave", Name: "buffer", Value: "3"}}})
			return err
		}},
		{"undo", quick, false, func() error { _, err := control.UndoSettings(ctx, &apiv1.UndoSettingsRequest{}); return err }},
		{"save", quick, false, func() error { _, err := control.SaveSettings(ctx, &apiv1.SaveSettingsRequest{}); return err }},
		{"reload", quick, false, func() error { _, err := control.Reload(ctx, &apiv1.ReloadRequest{}); return err }},
		{"pause here", quick, false, func() error {
			_, err := control.Pause(ctx, &apiv1.PauseRequest{Queue: "misbehave", Here: true})
			return err
		}},
		{"logs", quick, false, func() error {
			s, err := control.Logs(ctx, &apiv1.LogsRequest{Worker: w})
			if err == nil {
				s.Receive()
				err = errors.Join(s.Err(), s.Close())
			}
			return err
		}},
		{"stacks", 300 * time.Millisecond, false, func() error { _, err := control.Stacks(ctx, &apiv1.StacksRequest{Worker: w}); return err }},
		{"restart", quick, false, func() error { _, err := control.Restart(ctx, &apiv1.RestartRequest{Queue: "misbehave"}); return err }},
		{"watch", time.Second, false, func() error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			s, err := control.Watch(ctx, &apiv1.WatchRequest{})
			if err == nil {
				cancel()
				_ = s.Close()
			}
			return err
		}},
		{"pause", time.Second, true, func() error { _, err := control.Pause(ctx, &apiv1.PauseRequest{Queue: "misbehave"}); return err }},
		{"resume", time.Second, true, func() error { _, err := control.Resume(ctx, &apiv1.ResumeRequest{Queue: "misbehave"}); return err }},
		{"list", time.Second, true, func() error {
			_, err := control.ListTasks(ctx, &apiv1.ListTasksRequest{Queue: "misbehave", State: taskv1.State_STATE_DEAD})
			return err
		}},
		{"list of another queue", time.Second, true, func() error {
			_, err := control.ListTasks(ctx, &apiv1.ListTasksRequest{Queue: "foreign", State: taskv1.State_STATE_DEAD})
			return err
		}},
		{"retry", time.Second, true, func() error { _, err := control.RetryTasks(ctx, &apiv1.RetryTasksRequest{Tasks: sel}); return err }},
		{"drop", time.Second, true, func() error { _, err := control.DropTasks(ctx, &apiv1.DropTasksRequest{Tasks: sel}); return err }},
	} {
		began := time.Now()
		err := c.call()
		took := time.Since(began)
		if took > c.within+slack {
			t.Errorf("%s took %s", c.name, took)
		}
		t.Logf("%s: %s", c.name, took.Round(100*time.Microsecond))
		if c.broker {
			codeIs(t, c.name, err, connect.CodeUnavailable, "Redis")
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	r.Thaw()
	thawed = true
	eventually(t, "it is resumed", func() error {
		_, err := control.Resume(t.Context(), &apiv1.ResumeRequest{Queue: "misbehave"})
		return err
	})
	c := m.connect(t)
	eventually(t, "tasks are taken", func() error {
		_, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "return", "value": 1})
		return err
	})
	waitFor(t, c, submitTo(t, c, map[string]any{"do": "return", "value": 1}))
	m.stop()
}
