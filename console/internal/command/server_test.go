package command_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// manager is a control service whose answers are fixed; it remembers what it was asked to do.
type manager struct {
	apiv1connect.UnimplementedControlServiceHandler
	saved  string   // value of feed-pull.max_workers
	slots  string   // saved value of feed-pull.slots
	blind  bool     // it does not examine itself
	broken []string // the command of the plugin that does not start; empty for the usual one

	limits []string // of feed-pull, before the others

	mu     sync.Mutex
	asked  []any                  // requests that change something
	happen []*apiv1.WatchResponse // what Watch sends before it ends, or before it waits
	cut    bool                   // Watch ends by itself after that, once
	gone   bool                   // RetryTasks of dead letters fails in the second part
	err    error                  // of all but Status
}

func (m *manager) note(request any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, request)
	return m.err
}

func (m *manager) requests() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]any(nil), m.asked...)
}

// startManager serves m on a socket until the test ends, and returns a client.
func startManager(t *testing.T, m *manager) *client.ControlClient {
	t.Helper()
	path := filepath.Join(testenv.ShortDir(t), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewControlServiceHandler(m))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: mux, Protocols: protocols}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it was closed
	}()
	control, err := client.Control("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = control.Close() // never fails
		_ = server.Close()  // what it serves has ended
		<-ended             // http.ErrServerClosed
	})
	return control
}

func missing(format string) error { return connect.NewError(connect.CodeNotFound, errString(format)) }

func errString(text string) error { return errors.New(text) }

func (m *manager) Status(context.Context, *apiv1.StatusRequest) (*apiv1.StatusResponse, error) {
	s := sampleStatus()
	s.Workers[0].TaskIds, s.Workers[0].MemoryMaxBytes = []string{"feed-pull:running"}, 22<<20
	s.Workers[1].Frozen = true
	if len(m.broken) > 0 {
		s.Plugins[1].Command = m.broken
	}
	s.Plugins[0].Refused = "it does not start"
	s.Manager.Warnings = []string{"saved settings are not used: \x1b[2J"}
	return s, nil
}

func (m *manager) Managers(context.Context, *apiv1.ManagersRequest) (*apiv1.ManagersResponse, error) {
	return &apiv1.ManagersResponse{Managers: []*apiv1.ManagerEntry{
		{Name: "m1", Host: "one", Pid: 4242, Version: "1.0", StartedMs: now().Add(-time.Hour).UnixMilli(), State: "running", Queues: []string{"feed-pull", "misbehave"}, Workers: 4, Running: 3, SilentMs: 900, Own: true},
		{Name: "m2", Host: "two\x1b[2J", Pid: 17, Version: "1.0", StartedMs: now().Add(-time.Hour).UnixMilli(), State: "absent", Queues: []string{"feed-pull", "import"}, SilentMs: 61_000},
	}}, m.err
}

func (m *manager) Examine(context.Context, *apiv1.ExamineRequest) (*apiv1.ExamineResponse, error) {
	if m.blind {
		return nil, connect.NewError(connect.CodeUnimplemented, errString("?"))
	}
	return &apiv1.ExamineResponse{Findings: []*apiv1.Finding{
		{Check: "Redis eviction", Verdict: "bad", Found: "maxmemory-policy is allkeys-lru", Advice: "set maxmemory-policy noeviction"},
		{Check: "clocks", Verdict: "ok", Found: "they agree"},
		{Check: "locks", Verdict: "ok", Found: "memcached at 127.0.0.1:11211 answers"},
		{Check: "disk", Verdict: "ok", Found: "9.0 GiB free for the state directory in /var"},
	}}, m.err
}

// Schedules are one that runs, one that is paused and one that is broken; while the manager is blind nothing is known of them.
func (m *manager) Schedules(_ context.Context, r *apiv1.SchedulesRequest) (*apiv1.SchedulesResponse, error) {
	at := func(d time.Duration) int64 { return now().Add(d).UnixMilli() }
	all := []*apiv1.Schedule{
		{
			Name: "nightly", Queue: "feed-pull", Cron: "30 3 * * 1-5", TimeZone: "UTC", JitterMs: 60_000, Overlap: "skip", CatchUp: "last", Payload: `{"url":"https://example.org"}`, State: "on",
			Next:       []*apiv1.ScheduledRun{{DueMs: at(3 * time.Hour), AtMs: at(3*time.Hour + 12*time.Second)}, {DueMs: at(27 * time.Hour), AtMs: at(27 * time.Hour)}},
			LastTaskId: "feed-pull:nightly.20261130T033000Z", LastDueMs: at(-21 * time.Hour), LastAtMs: at(-21 * time.Hour), LastManager: "m1", LastState: taskv1.State_STATE_DEAD,
			LastFault: &taskv1.Fault{Kind: taskv1.FaultKind_FAULT_KIND_TIMEOUT, Message: "it took too long\x1b[2J"}, Fired: 12, Skipped: 2, Missed: 1,
		},
		{
			Name: "often", Queue: "feed-pull", EveryMs: 600_000, TimeZone: "UTC", Overlap: "queue", CatchUp: "none", Payload: "{}", State: "paused", PausedMs: at(-time.Minute), PausedBy: "kim",
			LastTaskId: "feed-pull:often.by-hand-x", LastAtMs: at(-time.Hour), LastManager: "m2", Fired: 3,
		},
		{Name: "wrong", Queue: "import", EveryMs: 1000, TimeZone: "UTC", Overlap: "allow", CatchUp: "last", Payload: "{}", State: "broken", Problem: "the payload does not fit: url: required\x1b[2J"},
	}
	answer := &apiv1.SchedulesResponse{}
	for _, s := range all {
		if r.GetName() == "" || r.GetName() == s.GetName() {
			answer.Schedules = append(answer.Schedules, s)
		}
	}
	if len(answer.GetSchedules()) == 0 {
		return nil, missing("no such schedule in this manager")
	}
	if m.blind {
		answer = &apiv1.SchedulesResponse{BrokerError: "Redis does not answer", Schedules: []*apiv1.Schedule{{
			Name: "nightly", Queue: "feed-pull", Cron: "@daily", TimeZone: "UTC", Overlap: "skip", CatchUp: "last", Payload: "{}", State: "unknown",
		}}}
	}
	return answer, m.err
}

func (m *manager) PauseSchedule(_ context.Context, r *apiv1.PauseScheduleRequest) (*apiv1.PauseScheduleResponse, error) {
	if r.GetName() != "nightly" {
		return nil, missing("no such schedule in this manager")
	}
	return &apiv1.PauseScheduleResponse{Changed: true}, m.note(r)
}

func (m *manager) ResumeSchedule(_ context.Context, r *apiv1.ResumeScheduleRequest) (*apiv1.ResumeScheduleResponse, error) {
	return &apiv1.ResumeScheduleResponse{}, m.note(r)
}

func (m *manager) RunSchedule(_ context.Context, r *apiv1.RunScheduleRequest) (*apiv1.RunScheduleResponse, error) {
	return &apiv1.RunScheduleResponse{TaskId: "feed-pull:" + r.GetName() + ".by-hand-y"}, m.note(r)
}

func (m *manager) Explain(_ context.Context, r *apiv1.ExplainRequest) (*apiv1.ExplainResponse, error) {
	if r.GetQueue() != "feed-pull" {
		return nil, missing("no such queue")
	}
	at := func(ago time.Duration) int64 { return now().Add(-ago).UnixMilli() }
	return &apiv1.ExplainResponse{
		Now: &apiv1.Decision{AtMs: at(time.Second), Reason: "all that may run do", Ready: 4, Waiting: 12, Running: 16, Capacity: 16, MeanRunUs: 480, StartCostUs: 11_000},
		Before: []*apiv1.Decision{
			{AtMs: at(3 * time.Second), Start: 2, Reason: "12 tasks wait", Ready: 2, Waiting: 12, Running: 8, Capacity: 8},
			{AtMs: at(time.Hour), Stop: 1, Reason: "idle\x1b[2J", Ready: 3},
		},
		Limits: append(slices.Clone(m.limits), "workers: max_workers is 4 and all are busy", "rate: 10/s"),
	}, m.err
}

func (m *manager) Locks(context.Context, *apiv1.LocksRequest) (*apiv1.LocksResponse, error) {
	at := func(d time.Duration) int64 { return now().Add(d).UnixMilli() }
	return &apiv1.LocksResponse{
		Store:   "memcached at 127.0.0.1:11211",
		Held:    []*apiv1.Lock{{Key: "https://example.org/feed", Queue: "feed-pull", TaskId: "feed-pull:running", SinceMs: at(-3 * time.Second), UntilMs: at(9 * time.Second)}},
		Waiting: []*apiv1.Lock{{Key: "https://example.org/feed", Queue: "feed-pull", TaskId: "feed-pull:held", SinceMs: at(-time.Second), HolderTaskId: "feed-pull:running", HolderManager: "dev"}},
	}, m.err
}

// ListTasks has 25 dead letters in pages of 10, and one task that waits.
func (m *manager) ListTasks(_ context.Context, r *apiv1.ListTasksRequest) (*apiv1.ListTasksResponse, error) {
	switch {
	case r.GetQueue() != "feed-pull":
		return nil, missing("no such queue")
	case r.GetState() == taskv1.State_STATE_WAITING:
		return &apiv1.ListTasksResponse{Tasks: []*taskv1.Task{waiting().Proto()}, Total: 1}, nil
	case r.GetState() != taskv1.State_STATE_DEAD:
		return &apiv1.ListTasksResponse{}, nil
	}
	first := 0
	if r.GetPageToken() != "" {
		first = int(r.GetPageToken()[0])
	}
	answer := &apiv1.ListTasksResponse{Total: 25}
	for i := first; i < min(25, first+10, first+int(r.GetLimit())); i++ {
		d := dead()
		d.ID.Key = string(rune('a' + i))
		answer.Tasks = append(answer.Tasks, d.Proto())
	}
	if next := first + len(answer.GetTasks()); next < 25 {
		answer.NextPageToken = string(rune(next))
	}
	return answer, nil
}

func (m *manager) RetryTasks(_ context.Context, r *apiv1.RetryTasksRequest) (*apiv1.RetryTasksResponse, error) {
	answer := &apiv1.RetryTasksResponse{}
	for _, id := range r.GetTasks().GetIds() {
		c := &apiv1.TaskChange{Id: id, State: taskv1.State_STATE_WAITING}
		if id == "feed-pull:running" {
			c.State, c.Refused = taskv1.State_STATE_RUNNING, "it is running"
		} else {
			answer.Changed++
		}
		answer.Changes = append(answer.Changes, c)
	}
	if dead := r.GetTasks().GetDead(); dead != nil {
		answer.Changed = 25
		switch {
		case !m.gone:
		case dead.GetPageToken() == "":
			answer.NextPageToken = "more"
		default:
			return nil, connect.NewError(connect.CodeUnavailable, errString("the manager stops"))
		}
	}
	return answer, m.note(r)
}

func (m *manager) DropTasks(_ context.Context, r *apiv1.DropTasksRequest) (*apiv1.DropTasksResponse, error) {
	answer := &apiv1.DropTasksResponse{Changed: 25}
	for _, id := range r.GetTasks().GetIds() {
		answer.Changes = append(answer.Changes, &apiv1.TaskChange{Id: id, State: taskv1.State_STATE_DROPPED})
	}
	return answer, m.note(r)
}

func (m *manager) Pause(_ context.Context, r *apiv1.PauseRequest) (*apiv1.PauseResponse, error) {
	if r.GetQueue() != "feed-pull" {
		return nil, missing("no such queue")
	}
	return &apiv1.PauseResponse{}, m.note(r)
}

func (m *manager) Resume(_ context.Context, r *apiv1.ResumeRequest) (*apiv1.ResumeResponse, error) {
	return &apiv1.ResumeResponse{}, m.note(r)
}

func (m *manager) Restart(_ context.Context, r *apiv1.RestartRequest) (*apiv1.RestartResponse, error) {
	if r.GetWorker() == 99 {
		return nil, missing("no such worker")
	}
	return &apiv1.RestartResponse{Workers: 2}, m.note(r)
}

func (m *manager) Kill(_ context.Context, r *apiv1.KillRequest) (*apiv1.KillResponse, error) {
	if r.GetWorker() == 99 {
		return nil, missing("no such worker")
	}
	return &apiv1.KillResponse{Pid: 4250, TaskIds: []string{"feed-pull:running"}}, m.note(r)
}

func (m *manager) Logs(_ context.Context, r *apiv1.LogsRequest, stream *connect.ServerStream[apiv1.LogsResponse]) error {
	if r.GetWorker() == 99 {
		return missing("no such worker")
	}
	return stream.Send(&apiv1.LogsResponse{Lines: []string{"starting", "\tred \x1b[31m"}, MissedBytes: 4096})
}

func (m *manager) Stacks(_ context.Context, r *apiv1.StacksRequest) (*apiv1.StacksResponse, error) {
	if r.GetWorker() == 18 {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errString("worker 18 cannot write its stacks"))
	}
	return &apiv1.StacksResponse{Text: "goroutine 1 [running]:\n\tmain.main()\n"}, nil
}

func (m *manager) Settings(_ context.Context, r *apiv1.SettingsRequest) (*apiv1.SettingsResponse, error) {
	all := []*apiv1.Setting{
		{Name: "max_memory", Value: "off", Source: "default", FileValue: "off", Allowed: "a size from 16MiB to 16TiB, or off (no limit)", Meaning: "Memory of all workers.", Takes: "now"},
		{Queue: "feed-pull", Name: "max_workers", Value: "8", Source: "live", FileValue: "4", Allowed: "a whole number from 1 to 1024", Meaning: "The most workers.", Takes: "now", SavedValue: m.saved},
		{Queue: "feed-pull", Name: "priority", Value: "user", Source: "saved", FileValue: "system", Allowed: "one of user, system", Meaning: "Who waits.", Takes: "next-task"},
		{Queue: "feed-pull", Name: "slots", Value: "4", Source: "file", FileValue: "4", Allowed: "a whole number from 1 to 1024", Meaning: "Tasks at once.", Takes: "next-worker", SavedValue: m.slots},
	}
	answer := &apiv1.SettingsResponse{Version: 7, UndoSteps: 2}
	for _, s := range all {
		if r.GetQueue() == "" || s.GetQueue() == r.GetQueue() || s.GetQueue() == "" && r.GetQueue() == "manager" {
			answer.Settings = append(answer.Settings, s)
		}
	}
	if len(answer.GetSettings()) == 0 {
		return nil, missing("no such queue")
	}
	return answer, nil
}

func (m *manager) ChangeSettings(_ context.Context, r *apiv1.ChangeSettingsRequest) (*apiv1.ChangeSettingsResponse, error) {
	answer := &apiv1.ChangeSettingsResponse{Version: 8}
	for _, c := range r.GetChanges() {
		switch c.GetValue() {
		case "nine":
			return nil, connect.NewError(connect.CodeInvalidArgument, errString("import: is not a queue of this manager"))
		case "9999":
			return nil, connect.NewError(connect.CodeInvalidArgument, errString("feed-pull.max_workers: 9999 is not allowed: a whole number from 1 to 1024"))
		case "8":
			continue
		}
		answer.Effects = append(answer.Effects, &apiv1.SettingEffect{Queue: c.GetQueue(), Name: c.GetName(), Before: "8", After: c.GetValue(), Effect: "2 workers drain"})
	}
	return answer, m.note(r)
}

func (m *manager) UndoSettings(_ context.Context, r *apiv1.UndoSettingsRequest) (*apiv1.UndoSettingsResponse, error) {
	return &apiv1.UndoSettingsResponse{Version: 9, Effects: []*apiv1.SettingEffect{{Queue: "feed-pull", Name: "max_workers", Before: "8", After: "4"}}}, m.note(r)
}

func (m *manager) SaveSettings(_ context.Context, r *apiv1.SaveSettingsRequest) (*apiv1.SaveSettingsResponse, error) {
	return &apiv1.SaveSettingsResponse{Path: "var/settings.yaml", Settings: 2}, m.note(r)
}

func (m *manager) Reload(_ context.Context, r *apiv1.ReloadRequest) (*apiv1.ReloadResponse, error) {
	return &apiv1.ReloadResponse{Version: 9, Effects: []*apiv1.SettingEffect{{Name: "max_memory", Before: "off", After: "1GiB"}}, NeedsRestart: []string{"redis.address"}}, m.note(r)
}

func (m *manager) Watch(ctx context.Context, _ *apiv1.WatchRequest, stream *connect.ServerStream[apiv1.WatchResponse]) error {
	m.mu.Lock()
	happen, cut := m.happen, m.cut
	m.cut = false
	m.mu.Unlock()
	for _, e := range happen {
		if err := stream.Send(e); err != nil {
			return err
		}
	}
	if cut {
		return connect.NewError(connect.CodeUnavailable, errString("the manager stops"))
	}
	<-ctx.Done()
	return nil
}

// killed is a task with a past: killed for its memory, interrupted, failed, and dead in the end.
func killed() *task.Task {
	t := dead()
	t.ID.Key, t.Attempts, t.Submitted, t.Ended = "killed", 7, now().Add(-time.Minute), now()
	t.Fault = fault.New(fault.HTTPStatus, "503")
	t.Counters = task.Counters{Failures: 1, Kills: 1, Interruptions: 1}
	at := func(d time.Duration) time.Time { return now().Add(-d) }
	t.History = []task.Attempt{
		{Number: 4, Manager: "dev", Worker: 17, PID: 4242, Started: at(50 * time.Second), Run: 3200 * time.Millisecond, End: task.EndKilled, Fault: fault.Memory,
			Message: "300 MiB is more than 256 MiB", Exit: "memory-max", Signal: "killed", RSS: 300 << 20, Limit: 256 << 20, Tail: []string{"reading", "too much \x1b[2J"}},
		{Number: 5, Manager: "dev", Worker: 18, PID: 4243, Started: at(40 * time.Second), Run: time.Second, End: task.EndSuspect, Fault: fault.Crash, Exit: "crash"},
		{Number: 6, Manager: "dev", Started: at(30 * time.Second), End: task.EndInterrupted, Fault: fault.Interrupted},
		{Number: 7, Manager: "dev", Worker: 19, PID: 4244, Started: at(time.Second), Run: time.Second, End: task.EndFailed, Fault: fault.HTTPStatus, Message: "503"},
	}
	return t
}

// retried is a task that was put back after it had died, and failed once since.
func retried() *task.Task {
	t := killed()
	t.ID.Key, t.State, t.Attempts, t.Counters = "retried", task.Failed, 1, task.Counters{Failures: 1}
	t.RunAt, t.Ended = now().Add(time.Minute), time.Time{}
	t.History = []task.Attempt{
		{Number: 5, Manager: "dev", Worker: 17, PID: 4242, Started: now().Add(-50 * time.Second), Run: time.Second, End: task.EndFailed, Fault: fault.HTTPStatus, Message: "500"},
		{Manager: "dev", Started: now().Add(-20 * time.Second), End: task.EndRetried},
		{Number: 1, Manager: "dev", Worker: 18, PID: 4243, Started: now().Add(-10 * time.Second), Run: time.Second, End: task.EndFailed, Fault: fault.HTTPStatus, Message: "503"},
		{Number: 1, Manager: "dev", Started: now().Add(-5 * time.Second), End: task.EndRetried},
	}
	return t
}

func held() *task.Task {
	return &task.Task{ID: task.ID{Queue: "feed-pull", Key: "held"}, Kind: "feed-pull", State: task.Held, Submitted: now().Add(-time.Second)}
}
