package command_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// A stack that a worker gave reaches the reader of why and of task: indented, clean and bounded, and not twice.
func TestDetail(t *testing.T) {
	t.Parallel()
	stack := "panic: boom\x1b[2J\n\tmain.go:7"
	for i := range 100 {
		stack += fmt.Sprintf("\nframe %d", i)
	}
	failed := dead()
	failed.Fault = fault.New(fault.Failed, "panic: boom").WithDetail(stack)
	again := running()
	again.State, again.Fault = task.Failed, failed.Fault
	said := dead()
	said.Fault = fault.New(fault.Crash, "exit code 2").WithDetail("one\ntwo")
	said.History = []task.Attempt{{Number: 1, End: task.EndFailed, Tail: []string{"one", "two"}}}
	for name, of := range map[string]*task.Task{"dead": failed, "failed": again} {
		for _, line := range []string{"why", "task"} {
			c := attach(t, &manager{})
			c.tasks.tasks[of.ID] = of
			_, out, _ := c.run(t.Context(), line, of.ID.String())
			if !strings.Contains(out, `panic: boom\x1b[2J`) || !strings.Contains(out, "    main.go:7") || !strings.Contains(out, "frame 99") || strings.Contains(out, "frame 50") ||
				!strings.Contains(out, "(72 lines are left out") || strings.Contains(out, "\nframe") {
				t.Errorf("%s of a %s task:\n%s", line, name, out)
			}
		}
	}
	if _, out, _ := newConsole(said).run(t.Context(), "why", said.ID.String()); strings.Count(out, "| two") != 1 {
		t.Errorf("what the last lines say is told again:\n%s", out)
	}
}

// A run that its manager's death took is one entry, in words, and is not taken for one that is forgotten.
func TestLoss(t *testing.T) {
	t.Parallel()
	lost := completed()
	lost.Counters, lost.History = task.Counters{Losses: 1}, []task.Attempt{{Started: now().Add(-time.Minute), End: task.EndLost, Fault: fault.Lost, Message: "its manager died while it had the task"}}
	const words = "its manager died; whether it had begun is not known"
	for _, line := range []string{"why", "task"} {
		_, out, _ := newConsole(lost).run(t.Context(), line, lost.ID.String())
		if strings.Count(out, words) != 1 || strings.Contains(out, "r 0 ms") || strings.Contains(out, "nothing is kept") || strings.Count(out, "died") != 1 {
			t.Errorf("%s:\n%s", line, out)
		}
	}
}

// What a task that a manager has taken waits for is what its queue is limited by first, and locks of others are not its matter.
func TestWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	other := held()
	other.ID.Key = "other"
	for limit, want := range map[string]string{
		"rate: 10/s, the next task may begin in 80ms": "it waits for its turn: its queue may start no more tasks now",
		"circuit: no worker can be started":           "it waits for a worker, and none can be started",
		"lock: 3 tasks wait":                          "it waits for a free worker",
	} {
		c := attach(t, &manager{limits: []string{limit}})
		c.tasks.tasks[other.ID] = other
		_, out, _ := c.run(t.Context(), "why", other.ID.String())
		if !strings.Contains(out, want) || strings.Contains(out, "limited by "+limit) == strings.HasPrefix(limit, "lock") {
			t.Errorf("%s:\n%s", limit, out)
		}
	}
}
