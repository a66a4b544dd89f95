// Package task is the vocabulary of a task: its ID, its states and their legal moves, what is known of it, and the names
// and encoding of what lies in Redis for it.
//
// Every side of Drover uses it: client, manager, console. It owns no connection and starts nothing; the scripts that move
// tasks stand where they are run.
package task

import (
	"encoding/json"
	"time"

	"github.com/drover-jobs/drover/protocol/fault"
)

// Task is what is known of a task. In a state that is an end it is the task's record.
type Task struct {
	ID       ID
	Kind     string
	State    State
	Attempts int // runs begun, or that may have begun before their manager died
	Counters Counters
	Payload  json.RawMessage // empty where it was not asked for
	Result   json.RawMessage // only when completed
	Fault    *fault.Fault    // the last failure
	// Zero when unknown or not yet.
	Submitted, Started, Ended time.Time
	// RunAt is when a delayed or failed task will be tried; zero when it need not wait.
	RunAt time.Time
	// Queued is how long the last run waited before it began; Run is how long it took.
	Queued, Run time.Duration
	Manager     string    // name of the manager that ended or holds it
	Progress    *Progress // what the worker of the run that goes on said last; nil when it said nothing, or nothing runs
	History     []Attempt // the last runs that did not end well, the oldest first; at most MaxHistory
}

// Counters say how often a task did not end well, by who was to blame.
type Counters struct {
	Failures      int `json:"failures"`      // the worker said that it failed
	Kills         int `json:"kills"`         // its process died or was killed while running it
	Interruptions int `json:"interruptions"` // given back because of a stop, a reload or a lost lock
	Losses        int `json:"losses"`        // its manager died
}

// Progress is how far a running task is. Total is 0 when the worker does not know it.
type Progress struct {
	Done  uint64 `json:"done"`
	Total uint64 `json:"total,omitempty"`
	Note  string `json:"note,omitempty"`
}

// Event is one thing that happened to a task.
type Event struct {
	ID       ID
	State    State
	At       time.Time
	Attempts int
	Progress *Progress  // only in progress events
	Fault    fault.Kind // None unless it failed
	Message  string     // what failed, for people; empty unless it did
	RunAt    time.Time  // when a failed task will be tried again
}

// taskJSON is the stable JSON form of a Task, as the console and the API print it.
type taskJSON struct {
	ID        ID              `json:"id"`
	Queue     string          `json:"queue"`
	Kind      string          `json:"kind,omitempty"`
	State     State           `json:"state"`
	Attempts  int             `json:"attempts"`
	Counters  Counters        `json:"counters"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *fault.Fault    `json:"error,omitempty"`
	Submitted *time.Time      `json:"submitted_at,omitempty"`
	Started   *time.Time      `json:"started_at,omitempty"`
	Ended     *time.Time      `json:"ended_at,omitempty"`
	RunAt     *time.Time      `json:"run_at,omitempty"`
	QueuedMS  int64           `json:"queued_ms"`
	RunMS     int64           `json:"run_ms"`
	Manager   string          `json:"manager,omitempty"`
	Progress  *Progress       `json:"progress,omitempty"`
	History   []Attempt       `json:"history,omitempty"`
}

// MarshalJSON writes the stable form: id, queue, state, attempts, result, error, queued_ms, run_ms and the rest.
func (t Task) MarshalJSON() ([]byte, error) {
	return json.Marshal(taskJSON{
		ID: t.ID, Queue: t.ID.Queue, Kind: t.Kind, State: t.State, Attempts: t.Attempts, Counters: t.Counters,
		Payload: t.Payload, Result: t.Result, Error: t.Fault,
		Submitted: given(t.Submitted), Started: given(t.Started), Ended: given(t.Ended), RunAt: given(t.RunAt),
		QueuedMS: t.Queued.Milliseconds(), RunMS: t.Run.Milliseconds(), Manager: t.Manager, Progress: t.Progress,
		History: t.History,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Task) UnmarshalJSON(data []byte) error {
	var j taskJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*t = Task{
		ID: j.ID, Kind: j.Kind, State: j.State, Attempts: j.Attempts, Counters: j.Counters, Payload: j.Payload, Result: j.Result,
		Fault: j.Error, Submitted: orZero(j.Submitted), Started: orZero(j.Started), Ended: orZero(j.Ended), RunAt: orZero(j.RunAt),
		Queued: time.Duration(j.QueuedMS) * time.Millisecond, Run: time.Duration(j.RunMS) * time.Millisecond,
		Manager: j.Manager, Progress: j.Progress, History: j.History,
	}
	return nil
}

func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
