package task

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// Bounds of what is kept of a task's runs. Redis holds it for every task that has not ended, so it is short.
const (
	MaxHistory        = 8
	MaxAttemptTail    = 1 << 10 // bytes
	maxAttemptMessage = 500     // bytes
)

// Ends of runs that did not end well.
const (
	EndFailed      = "failed"      // the worker said so
	EndKilled      = "killed"      // its process died or was killed, and it is to blame
	EndSuspect     = "suspect"     // the same, with others in the process: nobody is charged
	EndInterrupted = "interrupted" // stopped, and nobody is to blame
	EndLost        = "lost"        // its manager died
	EndExpired     = "expired"     // its client's deadline passed, and nobody is to blame
	// EndRetried is no run: at that moment an operator put the task back. Its Number is that of the runs that still count.
	EndRetried = "retried"
)

// Attempt is one run of a task that did not end well, as it is kept with the task.
type Attempt struct {
	Number  int           `json:"number,omitempty"` // 1 for the first run; 0 when unknown
	Manager string        `json:"manager"`
	Worker  uint64        `json:"worker,omitempty"` // the worker's number in its manager; 0 when no worker had the task
	PID     int           `json:"pid,omitempty"`
	Started time.Time     `json:"started_at"`
	Run     time.Duration `json:"run_ns"`
	End     string        `json:"end"` // one of the Ends
	Fault   fault.Kind    `json:"fault,omitempty"`
	Message string        `json:"message,omitempty"`
	Exit    string        `json:"exit_reason,omitempty"` // why the process ended, such as "memory-max"; empty when it went on
	Signal  string        `json:"signal,omitempty"`      // what ended the process, such as "killed"; empty for none
	RSS     int64         `json:"rss_bytes,omitempty"`   // of the process tree at its end; 0 when unknown
	Limit   int64         `json:"limit_bytes,omitempty"` // of memory that was crossed; 0 for none
	Tail    []string      `json:"tail,omitempty"`        // the last lines that the process wrote during the run; of a panic the first lines of its stack
}

// Remember returns the history with one run more, without the oldest when there are too many. It changes nothing in place.
func Remember(history []Attempt, a Attempt) []Attempt {
	kept := history[max(0, len(history)-MaxHistory+1):]
	return append(append(make([]Attempt, 0, len(kept)+1), kept...), a.shortened())
}

// shortened cuts the texts of an attempt to their bounds; of the tail the last lines stay.
func (a Attempt) shortened() Attempt {
	if len(a.Message) > maxAttemptMessage {
		a.Message = a.Message[:maxAttemptMessage]
	}
	size, first := 0, len(a.Tail)
	for first > 0 && size+len(a.Tail[first-1]) <= MaxAttemptTail {
		first--
		size += len(a.Tail[first])
	}
	a.Tail = a.Tail[first:]
	return a
}

// Proto returns a in its wire form.
func (a Attempt) Proto() *taskv1.Attempt {
	tail := make([]string, len(a.Tail))
	for i, line := range a.Tail {
		tail[i] = valid(line)
	}
	return &taskv1.Attempt{
		Number: count(a.Number), Manager: valid(a.Manager), Worker: a.Worker, Pid: int32(count(a.PID)), //nolint:gosec // a process number fits
		StartedMs: millis(a.Started), RunMs: a.Run.Milliseconds(), End: valid(a.End), FaultKind: taskv1.FaultKind(a.Fault), Message: valid(a.Message),
		ExitReason: valid(a.Exit), Signal: valid(a.Signal), RssBytes: a.RSS, LimitBytes: a.Limit, Tail: tail,
	}
}

// AttemptFromProto reads an attempt's wire form.
func AttemptFromProto(p *taskv1.Attempt) Attempt {
	return Attempt{
		Number: int(p.GetNumber()), Manager: p.GetManager(), Worker: p.GetWorker(), PID: int(p.GetPid()),
		Started: fromMillis(p.GetStartedMs()), Run: time.Duration(p.GetRunMs()) * time.Millisecond, End: p.GetEnd(),
		Fault: fault.Kind(p.GetFaultKind()), Message: p.GetMessage(), Exit: p.GetExitReason(), Signal: p.GetSignal(),
		RSS: p.GetRssBytes(), Limit: p.GetLimitBytes(), Tail: p.GetTail(),
	}
}

// EncodeHistory returns the bytes that lie in Redis beside a task for its history; none for none. Two histories joined end to
// end are one: a script adds a run to what lies there without reading it.
func EncodeHistory(history []Attempt) ([]byte, error) {
	if len(history) == 0 {
		return nil, nil
	}
	return proto.Marshal(&taskv1.Task{History: historyProto(history)})
}

// DecodeHistory reads what EncodeHistory wrote.
func DecodeHistory(data []byte) ([]Attempt, error) {
	var p taskv1.Task
	if err := proto.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("read a task's history: %w", err)
	}
	return historyFromProto(p.GetHistory()), nil
}

func historyProto(history []Attempt) []*taskv1.Attempt {
	if len(history) == 0 {
		return nil
	}
	all := make([]*taskv1.Attempt, len(history))
	for i, a := range history {
		all[i] = a.Proto()
	}
	return all
}

func historyFromProto(all []*taskv1.Attempt) []Attempt {
	if len(all) == 0 {
		return nil
	}
	all = all[max(0, len(all)-MaxHistory):]
	history := make([]Attempt, len(all))
	for i, p := range all {
		history[i] = AttemptFromProto(p)
	}
	return history
}
