package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// order is the payload of a task.
type order struct {
	Do    string          `json:"do"`
	Value json.RawMessage `json:"value"`
	Note  string          `json:"note"`
	MS    int64           `json:"ms"`
}

// maxFailures is how often a task fails before it is dead; maxKills, how often it kills its process before it is
// quarantined; steps, how many events of progress there are.
const (
	maxFailures = 2
	maxKills    = 2
	steps       = 5
)

// obey does what the payload says and returns how the run ended.
func (s *Standin) obey(ctx context.Context, message *task.Message, o order) *task.Task {
	t := &task.Task{ID: task.ID{Queue: s.queue, Key: message.Key}, State: task.Completed, Result: o.Value, Attempts: int(message.Retried) + 1}
	t.Counters.Failures = int(message.Retried)
	if len(t.Result) == 0 {
		t.Result = json.RawMessage("null")
	}
	if d := message.Deadline; d > 0 && time.Now().Unix() >= d {
		t.State, t.Result, t.Attempts = task.Expired, nil, 0
		t.Fault = fault.New(fault.Timeout, "its deadline had passed before it could be run")
		return t
	}
	whole := time.Duration(o.MS) * time.Millisecond
	switch o.Do {
	case "return":
	case "sleep":
		if !rest(ctx, whole) {
			return cancelled(t)
		}
	case "progress":
		for i := range steps {
			s.publish(&task.Event{ID: t.ID, State: task.Running, At: time.Now(), Attempts: t.Attempts, Progress: &task.Progress{Done: uint64(i) + 1, Total: steps}})
			if !rest(ctx, whole/steps) {
				return cancelled(t)
			}
		}
	case "fail":
		return failed(t, fault.New(fault.Failed, "%s", o.Note))
	case "permanent":
		return failed(t, fault.New(fault.Failed, "%s", o.Note).AsPermanent())
	case "panic":
		return killed(t, fault.New(fault.Panic, "%s", o.Note))
	case "exit":
		return killed(t, fault.New(fault.Crash, "the process ended while the task was running in it"))
	default:
		return failed(t, fault.New(fault.InvalidPayload, "do: %q is nothing that can be done", o.Do).AsPermanent())
	}
	return t
}

func failed(t *task.Task, f *fault.Fault) *task.Task {
	t.Result, t.Fault, t.State = nil, f, task.Failed
	if t.Counters.Failures++; f.Permanent || t.Counters.Failures >= maxFailures {
		t.State = task.Dead
	}
	return t
}

func killed(t *task.Task, f *fault.Fault) *task.Task {
	t.Counters.Failures = 0
	t.Counters.Kills = t.Attempts
	t.Result, t.Fault, t.State = nil, f, task.Failed
	if t.Counters.Kills >= maxKills {
		t.State = task.Quarantined
	}
	return t
}

func cancelled(t *task.Task) *task.Task {
	t.Result, t.State, t.Fault = nil, task.Cancelled, fault.New(fault.Cancelled, "cancelled while it ran")
	return t
}

// rest returns true after d, false when ctx ends first.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// finish writes down how a run ended, again and again until Redis has it or a minute is over.
func (s *Standin) finish(message *task.Message, t *task.Task) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := s.write(ctx, message, t)
		if err == nil || !rest(ctx, 10*pollEvery) {
			return
		}
	}
}

func (s *Standin) write(ctx context.Context, message *task.Message, t *task.Task) error {
	if t.State == task.Failed {
		return s.retry(ctx, message, t)
	}
	if keep, said := message.RecordKept(); said {
		return s.end(ctx, t, keep)
	}
	return s.End(ctx, t)
}

func (s *Standin) publish(e *task.Event) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	data, err := task.EncodeEvents(e)
	if err != nil {
		panic(fmt.Sprintf("write an event: %v", err))
	}
	keys := task.KeysOf(s.queue)
	_ = broker.Script(s.rdb, progressSource).Run(ctx, s.rdb, []string{keys.Task(e.ID.Key)}, keys.EventsChannel(), data) // progress may be lost
}
