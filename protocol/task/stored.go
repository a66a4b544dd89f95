package task

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/drover-jobs/drover/protocol/fault"
)

// The states of asynq, as they stand in a task's hash.
const (
	AsynqActive      = "active"
	AsynqPending     = "pending"
	AsynqScheduled   = "scheduled"
	AsynqRetry       = "retry"
	AsynqArchived    = "archived"
	AsynqCompleted   = "completed"
	AsynqAggregating = "aggregating"
)

// Stored is a task that has not left its queue, as it lies in Redis: the values of its hash, empty where there is none.
type Stored struct {
	Message, State, PendingSince           string
	Failures, Kills, Interruptions, Losses string
	End, Result, History, Progress         string
	// Due is the Unix second at which a scheduled or failed task is due.
	Due string
}

// Read makes a task of what lies in Redis, and returns its message as well. The error says that the message cannot be read.
//
// Every run that began has ended in one of the four counters, except the one that goes on, so the attempts are their sum, and
// one more for an active task.
func (s Stored) Read(id ID) (*Task, *Message, error) {
	message, err := DecodeMessage([]byte(s.Message))
	if err != nil {
		return nil, nil, err
	}
	t := &Task{
		ID: id, Kind: message.Kind, State: StateOfAsynq(s.State), Payload: message.Payload, Submitted: message.Submitted(),
		Counters: Counters{Failures: number(s.Failures), Kills: number(s.Kills), Interruptions: number(s.Interruptions), Losses: number(s.Losses)},
	}
	if !json.Valid(t.Payload) { // of a foreign client
		t.Payload = nil
	}
	t.Attempts = max(int(message.Retried), t.Counters.Failures+t.Counters.Kills+t.Counters.Interruptions+t.Counters.Losses)
	t.History, _ = DecodeHistory([]byte(s.History)) // one that cannot be read is none
	if message.ErrorMsg != "" {
		t.Fault = readFault(message.ErrorMsg)
	}
	switch s.State {
	case AsynqActive:
		t.Attempts++
		t.Progress = latest(s.Progress, t.Attempts)
	case AsynqPending:
		if ns, err := strconv.ParseInt(s.PendingSince, 10, 64); err == nil && t.Submitted.IsZero() {
			t.Submitted = time.Unix(0, ns).UTC()
		}
	case AsynqScheduled, AsynqRetry:
		if due, err := strconv.ParseFloat(s.Due, 64); err == nil {
			t.RunAt = time.Unix(int64(due), 0).UTC()
		}
	case AsynqArchived:
		if end, err := ParseState(s.End); err == nil && end.Ended() {
			t.State = end
		}
		if message.LastFailedAt > 0 {
			t.Ended = time.Unix(message.LastFailedAt, 0).UTC()
		}
	case AsynqCompleted:
		if result := []byte(s.Result); json.Valid(result) {
			t.Result = result
		}
	}
	return t, message, nil
}

// latest is the progress that a run reported last; nil when what lies there is of an earlier run, or nothing.
func latest(encoded string, attempt int) *Progress {
	events, err := DecodeEvents([]byte(encoded))
	if err != nil || len(events) != 1 || events[0].Attempts != attempt {
		return nil
	}
	return events[0].Progress
}

// StateOfAsynq says asynq's state in Drover's words. An active task is Running: only the manager that has it knows whether a
// worker does.
func StateOfAsynq(asynq string) State {
	switch asynq {
	case AsynqActive:
		return Running
	case AsynqPending, AsynqScheduled, AsynqAggregating:
		return Waiting
	case AsynqRetry:
		return Failed
	case AsynqArchived:
		return Dead
	case AsynqCompleted:
		return Completed
	default:
		return Unknown
	}
}

// readFault reads asynq's error text, which is "kind: message" when a manager wrote it.
func readFault(message string) *fault.Fault {
	name, rest, _ := strings.Cut(message, ": ")
	var kind fault.Kind
	_ = kind.UnmarshalText([]byte(name)) // never fails: an unknown name is Failed
	if kind != fault.None && kind.String() == name {
		return fault.New(kind, "%s", rest)
	}
	return fault.New(fault.Failed, "%s", message)
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
