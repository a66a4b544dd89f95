package orchestrator_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/protocol/client/direct"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// everySecond is a schedule of the queue "noop" that lets runs overlap.
const everySecond = "schedules:\n  tick: {queue: noop, every: 1s, overlap: allow}\n"

// withSchedules is a manager of its own name with schedules.
func withSchedules(t *testing.T, redis, name, schedules string) *manager {
	t.Helper()
	m := setUp(t, redis, "", "")
	m.rewrite(strings.Replace(m.base(t), "name: test", "name: "+name, 1) + schedules)
	return m
}

// schedule is what a manager says of one schedule.
func (m *manager) schedule(t *testing.T, name string) *apiv1.Schedule {
	t.Helper()
	answer, err := m.control(t).Schedules(t.Context(), &apiv1.SchedulesRequest{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetSchedules()[0]
}

// fired waits until a schedule has had that many runs.
func (m *manager) fired(t *testing.T, name string, runs int64) *apiv1.Schedule {
	t.Helper()
	var s *apiv1.Schedule
	eventually(t, fmt.Sprintf("%d runs of %s", runs, name), func() error {
		if s = m.schedule(t, name); s.GetFired() < runs {
			return fmt.Errorf("%d: %v", s.GetFired(), s)
		}
		return nil
	})
	return s
}

// beforeFirst is a moment before the first due time of a schedule that is run every second and has missed none.
func beforeFirst(s *apiv1.Schedule) time.Time {
	return time.UnixMilli(s.GetLastDueMs()).Add(-time.Duration(s.GetFired()) * time.Second)
}

// ranOnce wants a completed task for each due time after began and up to the last that was decided, but for the missed.
func ranOnce(t *testing.T, c *direct.Client, s *apiv1.Schedule, began time.Time) {
	t.Helper()
	due, ran := int64(0), int64(0)
	for at := began.Truncate(time.Second).Add(time.Second); !at.After(time.UnixMilli(s.GetLastDueMs())); at = at.Add(time.Second) {
		due++
		if _, err := c.Get(t.Context(), task.ScheduledID("noop", "tick", at)); err == nil {
			ran++
		}
	}
	if ran != s.GetFired() || due != s.GetFired()+s.GetMissed() || s.GetSkipped() != 0 {
		t.Errorf("%d due times and %d runs of them; fired %d, missed %d, skipped %d", due, ran, s.GetFired(), s.GetMissed(), s.GetSkipped())
	}
}

// Three managers fire one schedule, and each is killed and started again in turn: every due time is run exactly once, without a gap while
// one of them is there.
func TestScheduleWhateverDies(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{AppendOnly: true})
	redis := fmt.Sprintf("{address: %q}", r.URL())
	managers := make([]*manager, 3)
	for i := range managers {
		managers[i] = withSchedules(t, redis, fmt.Sprintf("m%d", i), everySecond).start()
	}
	c := straight(t, r)
	began := beforeFirst(managers[0].fired(t, "tick", 1))
	for range 2 {
		for i, m := range managers {
			m.signal(syscall.SIGKILL)
			m.wait()
			m.start()
			other := managers[(i+1)%len(managers)]
			other.fired(t, "tick", other.schedule(t, "tick").GetFired()+1)
		}
	}
	var last *apiv1.Schedule
	for _, m := range managers { // so that nothing is fired while it is counted
		last = m.schedule(t, "tick")
		m.stop()
	}
	m := managers[0]
	m.rewrite(strings.Replace(m.base(t), "every: 1s", "every: 1s, enabled: false", 1))
	m.start()
	last = m.fired(t, "tick", last.GetFired())
	if last.GetMissed() != 0 || last.GetState() != "off" {
		t.Errorf("%v", last)
	}
	eventually(t, "the last run has ended", func() error {
		if s := m.schedule(t, "tick"); task.State(s.GetLastState()) != task.Completed {
			return fmt.Errorf("%v", s)
		}
		return nil
	})
	ranOnce(t, c, last, began)
}

// Redis goes for some due times and comes back: the last of them is run, the others count as missed, and nothing is run twice. While it is
// away the schedules are listed all the same, and it is said that they are not known.
func TestScheduleWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{AppendOnly: true})
	m := withSchedules(t, fmt.Sprintf("{address: %q}", r.URL()), "test", everySecond).start()
	began := beforeFirst(m.fired(t, "tick", 1))
	r.Kill()
	gone := time.Now()
	eventually(t, "some due times have passed", func() error {
		if away := time.Since(gone); away < 4*time.Second {
			return fmt.Errorf("%s", away)
		}
		return nil
	})
	answer, err := m.control(t).Schedules(t.Context(), &apiv1.SchedulesRequest{})
	if err != nil || answer.GetBrokerError() == "" || len(answer.GetSchedules()) != 1 || answer.GetSchedules()[0].GetState() != "unknown" {
		t.Errorf("while Redis is away: %v, %v", answer, err)
	}
	if _, err := m.control(t).PauseSchedule(t.Context(), &apiv1.PauseScheduleRequest{Name: "tick"}); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("pause: %v", err)
	}
	r.Start()
	fired := m.schedule(t, "tick").GetFired()
	m.fired(t, "tick", fired+3)
	eventually(t, "what passed is counted", func() error {
		if s := m.schedule(t, "tick"); s.GetMissed() < 2 {
			return fmt.Errorf("%v", s)
		}
		return nil
	})
	m.reloaded(t, m.control(t), strings.Replace(m.base(t), "every: 1s", "every: 1s, enabled: false", 1))
	ranOnce(t, straight(t, r), m.schedule(t, "tick"), began)
}

// A reload adds, changes and takes schedules away without a restart, and refuses one whose payload does not fit; a live change, checked in
// the same way, holds over the file, is saved and taken back.
func TestScheduleChanges(t *testing.T) {
	t.Parallel()
	m := withSchedules(t, "{embedded: true}", "test", "").start()
	c := m.control(t)
	if _, err := c.Schedules(t.Context(), &apiv1.SchedulesRequest{Name: "tick"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("one that is not there: %v", err)
	}
	base := m.base(t)
	answer := m.reloaded(t, c, base+everySecond)
	if e := answer.GetEffects(); len(e) != 1 || e[0].GetQueue() != "schedule:tick" || e[0].GetAfter() != "noop" {
		t.Errorf("effects: %v", e)
	}
	s := m.fired(t, "tick", 2)
	if s.GetState() != "on" || s.GetEveryMs() != 1000 || len(s.GetNext()) != 5 || !strings.HasPrefix(s.GetLastTaskId(), "noop:tick.") || s.GetLastManager() != "test" {
		t.Errorf("%v", s)
	}
	change := func(changes ...*apiv1.SettingChange) (*apiv1.ChangeSettingsResponse, error) {
		return c.ChangeSettings(t.Context(), &apiv1.ChangeSettingsRequest{Changes: changes, Who: "test"})
	}
	made, err := change(&apiv1.SettingChange{Queue: "schedule:tick", Name: "every", Value: "off"}, &apiv1.SettingChange{Queue: "schedule:tick", Name: "cron", Value: "@yearly"})
	if err != nil || len(made.GetEffects()) != 2 {
		t.Fatalf("%v, %v", made, err)
	}
	if s = m.schedule(t, "tick"); s.GetCron() != "@yearly" || s.GetEveryMs() != 0 || time.UnixMilli(s.GetNext()[0].GetDueMs()).UTC().Month() != time.January {
		t.Errorf("%v", s)
	}
	if _, err := change(&apiv1.SettingChange{Queue: "schedule:tick", Name: "every", Value: "5m"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("cron beside every: %v", err)
	}
	if _, err := c.SaveSettings(t.Context(), &apiv1.SaveSettingsRequest{}); err != nil {
		t.Fatal(err)
	}
	m.stop()
	m.start()
	c = m.control(t)
	if s = m.schedule(t, "tick"); s.GetCron() != "@yearly" {
		t.Errorf("what was saved is gone after a restart: %v", s)
	}
	ran, err := c.RunSchedule(t.Context(), &apiv1.RunScheduleRequest{Name: "tick"})
	if err != nil {
		t.Fatal(err)
	}
	id, err := task.ParseID(ran.GetTaskId())
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, m.connect(t), id)
	if s = m.schedule(t, "tick"); s.GetLastTaskId() != ran.GetTaskId() || s.GetLastDueMs() != 0 || task.State(s.GetLastState()) != task.Completed {
		t.Errorf("after a run by hand: %v", s)
	}
	paused, err := c.PauseSchedule(t.Context(), &apiv1.PauseScheduleRequest{Name: "tick", Who: "kim"})
	if s = m.schedule(t, "tick"); err != nil || !paused.GetChanged() || s.GetState() != "paused" || !strings.HasPrefix(s.GetPausedBy(), "kim") || len(s.GetNext()) != 0 {
		t.Errorf("%v, %v, %v", paused, s, err)
	}
	if resumed, err := c.ResumeSchedule(t.Context(), &apiv1.ResumeScheduleRequest{Name: "tick"}); err != nil || !resumed.GetChanged() {
		t.Errorf("%v, %v", resumed, err)
	}
	answer = m.reloaded(t, c, base)
	if e := answer.GetEffects(); len(e) != 1 || e[0].GetBefore() != "noop" || e[0].GetAfter() != "" {
		t.Errorf("effects: %v", e)
	}
	if all, err := c.Schedules(t.Context(), &apiv1.SchedulesRequest{}); err != nil || len(all.GetSchedules()) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// A payload that does not fit the worker is refused by a reload and by a live change, and does not keep the manager from starting.
func TestSchedulePayloadDoesNotFit(t *testing.T) {
	t.Parallel()
	const bad = "schedules:\n  s: {queue: misbehave, every: 1h, payload: {do: 5}}\n"
	m := withSchedules(t, "{embedded: true}", "test", bad).start()
	if s := m.schedule(t, "s"); s.GetState() != "broken" || !strings.Contains(s.GetProblem(), "do: ") {
		t.Errorf("%v", s)
	}
	c := m.control(t)
	warnings := func() string {
		status, err := c.Status(t.Context(), &apiv1.StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(status.GetManager().GetWarnings(), "\n")
	}
	if told := warnings(); !strings.Contains(told, "schedule s is broken and submits nothing: ") || !strings.Contains(told, "do: ") {
		t.Errorf("the status warns of %q", told)
	}
	if _, err := c.Reload(t.Context(), &apiv1.ReloadRequest{}); connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "schedules.s.payload does not fit queue misbehave: do: ") {
		t.Errorf("reload: %v", err)
	}
	change := &apiv1.SettingChange{Queue: "schedule:s", Name: "payload", Value: `{"do":6}`}
	if _, err := c.ChangeSettings(t.Context(), &apiv1.ChangeSettingsRequest{Changes: []*apiv1.SettingChange{change}}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("change: %v", err)
	}
	change.Value = `{"do":"return"}`
	if _, err := c.ChangeSettings(t.Context(), &apiv1.ChangeSettingsRequest{Changes: []*apiv1.SettingChange{change}}); err != nil {
		t.Errorf("change: %v", err)
	}
	if s := m.schedule(t, "s"); s.GetState() != "on" || warnings() != "" {
		t.Errorf("%v, the status warns of %q", s, warnings())
	}
}
