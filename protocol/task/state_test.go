package task_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-jobs/drover/protocol/task"
)

// Every pair of states: the moves listed here are legal, and no other.
func TestMoves(t *testing.T) {
	t.Parallel()
	legal := map[task.State][]task.State{
		task.Waiting:     {task.Held, task.Cancelled, task.Dropped, task.Expired},
		task.Held:        {task.Running, task.Waiting, task.Completed, task.Dead, task.Cancelled, task.Dropped, task.Expired},
		task.Running:     {task.Completed, task.Failed, task.Dead, task.Quarantined, task.Cancelled, task.Expired, task.Waiting},
		task.Failed:      {task.Waiting, task.Cancelled, task.Dropped, task.Expired},
		task.Dead:        {task.Waiting, task.Dropped},
		task.Quarantined: {task.Waiting, task.Dropped},
		task.Expired:     {task.Waiting, task.Dropped},
	}
	all := append(task.States(), task.Unknown, task.State(99))
	for _, from := range all {
		for _, to := range all {
			want := false
			for _, next := range legal[from] {
				want = want || next == to
			}
			if got := from.CanBecome(to); got != want {
				t.Errorf("%v -> %v: %v, want %v", from, to, got, want)
			}
		}
	}
}

// Exactly the states that nothing follows by itself are ends.
func TestEnds(t *testing.T) {
	t.Parallel()
	ends := map[task.State]bool{
		task.Completed: true, task.Dead: true, task.Quarantined: true, task.Cancelled: true, task.Dropped: true, task.Expired: true,
	}
	for _, s := range append(task.States(), task.Unknown, task.State(99)) {
		if s.Ended() != ends[s] {
			t.Errorf("%v ended: %v", s, s.Ended())
		}
	}
}

// A state's name reads back; a person's mistake is an error that lists the names, and another program's news is Unknown.
func TestStateNames(t *testing.T) {
	t.Parallel()
	if n := len(task.States()); n != 10 {
		t.Errorf("there are %d states", n)
	}
	for _, s := range task.States() {
		if got, err := task.ParseState(s.String()); err != nil || got != s {
			t.Errorf("%v: got %v, %v", s, got, err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got task.State
		if err := json.Unmarshal(text, &got); err != nil || got != s {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, name := range []string{"", "unknown", "Waiting", "finished"} {
		if s, err := task.ParseState(name); err == nil {
			t.Errorf("%q is %v", name, s)
		}
		s := task.Running
		if err := s.UnmarshalText([]byte(name)); err != nil || s != task.Unknown {
			t.Errorf("%q from another program: %v, %v", name, s, err)
		}
	}
}
