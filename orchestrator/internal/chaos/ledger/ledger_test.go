package ledger_test

import (
	"strings"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/ledger"
	"github.com/drover-jobs/drover/protocol/task"
)

// Lines of several processes that lie between each other become runs, each with what is known of its end.
func TestRead(t *testing.T) {
	t.Parallel()
	a, b, c := task.RandomID("q"), task.RandomID("q"), task.RandomID("other")
	text := strings.NewReplacer("A", a.String(), "B", b.String(), "C", c.String()).Replace(`begin A 1 10 5 100 "key \"x\" y"
begin B 1 11 5 110 ""
beat A 1 10 5 120 "key \"x\" y"
begin C 2 12 6 130 ""
end B 1 11 5 140 ""
begin A 2 12 6 150 "key \"x\" y"
fail C 2 12 6 160 ""
`)
	runs, err := ledger.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.Run{
		{ID: a, Attempt: 1, PID: 10, Manager: 5, Lock: `key "x" y`, Begin: 100, Last: 120},
		{ID: b, Attempt: 1, PID: 11, Manager: 5, Begin: 110, Last: 140, Ended: true, Done: true},
		{ID: c, Attempt: 2, PID: 12, Manager: 6, Begin: 130, Last: 160, Ended: true},
		{ID: a, Attempt: 2, PID: 12, Manager: 6, Lock: `key "x" y`, Begin: 150, Last: 150},
	}
	if len(runs) != len(want) {
		t.Fatalf("%d runs: %+v", len(runs), runs)
	}
	for i := range want {
		if runs[i] != want[i] {
			t.Errorf("run %d is %+v, want %+v", i, runs[i], want[i])
		}
	}
}

// A ledger that is not understood proves nothing, and is an error.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	id := task.RandomID("q").String()
	for _, text := range []string{"begin\n", "begin nonsense 1 2 3 4 \"\"\n", "end " + id + " 1 2 3 4 \"\"\n", "begin " + id + " x 2 3 4 \"\"\n"} {
		if runs, err := ledger.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q gave %+v", text, runs)
		}
	}
}
