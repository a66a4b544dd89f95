package task

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// Proto returns t in its wire form.
func (t *Task) Proto() *taskv1.Task {
	return &taskv1.Task{
		Id: valid(t.ID.String()), Kind: valid(t.Kind), State: taskv1.State(t.State), Attempts: count(t.Attempts), Counters: t.Counters.Proto(),
		Payload: t.Payload, Result: t.Result, Fault: t.Fault.Proto(),
		SubmittedMs: millis(t.Submitted), StartedMs: millis(t.Started), EndedMs: millis(t.Ended), RunAtMs: millis(t.RunAt),
		QueuedMs: t.Queued.Milliseconds(), RunMs: t.Run.Milliseconds(), Manager: valid(t.Manager),
		History: historyProto(t.History), Progress: t.Progress.Proto(),
	}
}

// FromProto reads a task's wire form. The ID must be sound; everything else is taken as it is.
func FromProto(p *taskv1.Task) (*Task, error) {
	id, err := ParseID(p.GetId())
	if err != nil {
		return nil, err
	}
	return &Task{
		ID: id, Kind: p.GetKind(), State: stateOf(p.GetState()), Attempts: int(p.GetAttempts()), Counters: CountersFromProto(p.GetCounters()),
		Payload: p.GetPayload(), Result: p.GetResult(), Fault: fault.FromProto(p.GetFault()),
		Submitted: fromMillis(p.GetSubmittedMs()), Started: fromMillis(p.GetStartedMs()), Ended: fromMillis(p.GetEndedMs()), RunAt: fromMillis(p.GetRunAtMs()),
		Queued: time.Duration(p.GetQueuedMs()) * time.Millisecond, Run: time.Duration(p.GetRunMs()) * time.Millisecond, Manager: p.GetManager(),
		History: historyFromProto(p.GetHistory()), Progress: ProgressFromProto(p.GetProgress()),
	}, nil
}

// Proto returns c in its wire form.
func (c Counters) Proto() *taskv1.Counters {
	return &taskv1.Counters{
		Failures: count(c.Failures), Kills: count(c.Kills), Interruptions: count(c.Interruptions), Losses: count(c.Losses),
	}
}

// CountersFromProto reads the wire form; all zero for nil.
func CountersFromProto(p *taskv1.Counters) Counters {
	return Counters{
		Failures: int(p.GetFailures()), Kills: int(p.GetKills()), Interruptions: int(p.GetInterruptions()), Losses: int(p.GetLosses()),
	}
}

// Proto returns p in its wire form; nil for nil.
func (p *Progress) Proto() *taskv1.Progress {
	if p == nil {
		return nil
	}
	return &taskv1.Progress{Done: p.Done, Total: p.Total, Note: valid(p.Note)}
}

// ProgressFromProto reads the wire form; nil for nil.
func ProgressFromProto(p *taskv1.Progress) *Progress {
	if p == nil {
		return nil
	}
	return &Progress{Done: p.GetDone(), Total: p.GetTotal(), Note: p.GetNote()}
}

// Proto returns e in its wire form.
func (e *Event) Proto() *taskv1.Event {
	return &taskv1.Event{
		Id: valid(e.ID.String()), State: taskv1.State(e.State), AtMs: millis(e.At), Attempts: count(e.Attempts),
		Progress: e.Progress.Proto(), FaultKind: taskv1.FaultKind(e.Fault), Message: brief(e.Message), RunAtMs: millis(e.RunAt),
	}
}

// maxEventMessage bounds what an event says of a failure, in bytes; the record has it whole.
const maxEventMessage = 500

func brief(message string) string {
	if len(message) > maxEventMessage {
		message = message[:maxEventMessage]
	}
	return valid(message)
}

// EventFromProto reads an event's wire form.
func EventFromProto(p *taskv1.Event) (*Event, error) {
	id, err := ParseID(p.GetId())
	if err != nil {
		return nil, err
	}
	return &Event{
		ID: id, State: stateOf(p.GetState()), At: fromMillis(p.GetAtMs()), Attempts: int(p.GetAttempts()),
		Progress: ProgressFromProto(p.GetProgress()), Fault: fault.Kind(p.GetFaultKind()),
		Message: brief(p.GetMessage()), RunAt: fromMillis(p.GetRunAtMs()),
	}, nil
}

// EncodeRecord returns the bytes that lie in Redis as the task's terminal record.
func EncodeRecord(t *Task) ([]byte, error) { return proto.Marshal(t.Proto()) }

// DecodeRecord reads a terminal record.
func DecodeRecord(data []byte) (*Task, error) {
	var p taskv1.Task
	if err := proto.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("read a task's record: %w", err)
	}
	return FromProto(&p)
}

// EncodeEvents returns one message for a queue's event channel.
func EncodeEvents(events ...*Event) ([]byte, error) {
	batch := &taskv1.Events{Events: make([]*taskv1.Event, len(events))}
	for i, e := range events {
		batch.Events[i] = e.Proto()
	}
	return proto.Marshal(batch)
}

// DecodeEvents reads a message of a queue's event channel. Events with an unsound ID are left out.
func DecodeEvents(data []byte) ([]*Event, error) {
	var batch taskv1.Events
	if err := proto.Unmarshal(data, &batch); err != nil {
		return nil, fmt.Errorf("read a message of events: %w", err)
	}
	events := make([]*Event, 0, len(batch.GetEvents()))
	for _, p := range batch.GetEvents() {
		if e, err := EventFromProto(p); err == nil {
			events = append(events, e)
		}
	}
	return events, nil
}

func stateOf(p taskv1.State) State {
	if _, ok := states[State(p)]; !ok {
		return Unknown
	}
	return State(p)
}

// valid makes a text fit for a message: one wrong byte, and all of it could not be sent.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func count(n int) uint32 { return uint32(max(0, min(n, 1<<31))) } //nolint:gosec // clamped

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
