package task

import (
	"fmt"

	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
)

// State is where a task is.
type State int32

// The states of a task.
const (
	Unknown     State = State(taskv1.State_STATE_UNSPECIFIED)
	Waiting     State = State(taskv1.State_STATE_WAITING)
	Held        State = State(taskv1.State_STATE_HELD)
	Running     State = State(taskv1.State_STATE_RUNNING)
	Completed   State = State(taskv1.State_STATE_COMPLETED)
	Failed      State = State(taskv1.State_STATE_FAILED)
	Dead        State = State(taskv1.State_STATE_DEAD)
	Quarantined State = State(taskv1.State_STATE_QUARANTINED)
	Cancelled   State = State(taskv1.State_STATE_CANCELLED)
	Dropped     State = State(taskv1.State_STATE_DROPPED)
	Expired     State = State(taskv1.State_STATE_EXPIRED)
)

// stateInfo describes one state: its name, whether it is an end, and the states that may follow.
type stateInfo struct {
	name string
	end  bool
	next []State
}

// states is the one table of legal moves. A dead, quarantined or expired task is a dead letter: an end that an
// operator, or the same work submitted again, may take back to waiting.
var states = map[State]stateInfo{ //nolint:gochecknoglobals // the table itself; never written
	Unknown:     {name: "unknown"},
	Waiting:     {name: "waiting", next: []State{Held, Cancelled, Dropped, Expired}},
	Held:        {name: "held", next: []State{Running, Waiting, Completed, Dead, Cancelled, Dropped, Expired}},
	Running:     {name: "running", next: []State{Completed, Failed, Dead, Quarantined, Cancelled, Expired, Waiting}},
	Failed:      {name: "failed", next: []State{Waiting, Cancelled, Dropped, Expired}},
	Completed:   {name: "completed", end: true},
	Dead:        {name: "dead", end: true, next: []State{Waiting, Dropped}},
	Quarantined: {name: "quarantined", end: true, next: []State{Waiting, Dropped}},
	Cancelled:   {name: "cancelled", end: true},
	Dropped:     {name: "dropped", end: true},
	Expired:     {name: "expired", end: true, next: []State{Waiting, Dropped}},
}

// States returns every state, in the order of their numbers.
func States() []State {
	all := make([]State, 0, len(states))
	for s := Waiting; s <= Expired; s++ {
		all = append(all, s)
	}
	return all
}

// String returns the state's name as it stands in JSON, such as "completed".
func (s State) String() string {
	if info, ok := states[s]; ok {
		return info.name
	}
	return states[Unknown].name
}

// Ended reports whether s is an end: nothing follows by itself.
func (s State) Ended() bool { return states[s].end }

// CanBecome reports whether the move from s to next is legal.
func (s State) CanBecome(next State) bool {
	for _, n := range states[s].next {
		if n == next {
			return true
		}
	}
	return false
}

// ParseState reads a state's name.
func ParseState(name string) (State, error) {
	for s, info := range states {
		if info.name == name && s != Unknown {
			return s, nil
		}
	}
	return Unknown, fmt.Errorf("unknown task state %q: use one of %v", name, States())
}

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. A name that it does not know is read as Unknown, so that an older
// reader understands a newer writer; ParseState is for what people write.
func (s *State) UnmarshalText(text []byte) error {
	*s, _ = ParseState(string(text))
	return nil
}
