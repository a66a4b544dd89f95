package orchestrator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A task whose client's deadline passes while it runs has expired, whether it heeds that or has to be killed: nobody is charged, it is
// a dead letter that is listed, and a retry runs it.
func TestDeadlineDuringARun(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, `{address: "`+r.URL()+`"}`, "", "kill_grace: 200ms, max_workers: 2, slots: 1")
	m.start()
	c := straight(t, r)
	deadline := client.Deadline(time.Now().Add(2 * time.Second))
	ids := make([]task.ID, 0, 2)
	for _, do := range []string{"sleep", "ignore-cancel"} {
		s, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": do, "ms": 6000}, deadline)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	for i, says := range []string{"of its run", "ignored the request to end for kill_grace (200ms)"} {
		e, err := client.Wait(t.Context(), c, ids[i])
		if err != nil || e.State != task.Expired || e.Fault == nil || e.Fault.Kind != fault.Timeout || !strings.Contains(e.Fault.Message, "its deadline, ") || !strings.Contains(e.Fault.Message, says) {
			t.Fatalf("%+v, %v, %v", e, e.Fault, err)
		}
		if e.Counters != (task.Counters{Interruptions: 1}) || e.Attempts != 1 || len(e.History) != 1 || e.History[0].End != task.EndExpired {
			t.Errorf("%+v", e)
		}
	}
	control := m.control(t)
	for _, state := range []taskv1.State{taskv1.State_STATE_EXPIRED, taskv1.State_STATE_DEAD} {
		list, err := control.ListTasks(t.Context(), &apiv1.ListTasksRequest{Queue: "misbehave", State: state})
		if err != nil || list.GetTotal() != 2 || list.GetTasks()[0].GetState() != taskv1.State_STATE_EXPIRED {
			t.Errorf("%s: %v, %v", state, list, err)
		}
	}
	again, err := control.RetryTasks(t.Context(), &apiv1.RetryTasksRequest{Tasks: &apiv1.TaskSelection{DeadOfQueue: "misbehave"}})
	if err != nil || again.GetChanged() != 2 {
		t.Fatalf("%v, %v", again, err)
	}
	ended, err := client.WaitAll(t.Context(), c, ids...)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ended {
		if e.State != task.Completed || e.Attempts != 1 || e.Counters != (task.Counters{}) {
			t.Errorf("after the retry: %+v, %v", e, e.Fault)
		}
	}
	m.stop()
}
