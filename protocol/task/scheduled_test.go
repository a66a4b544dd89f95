package task_test

import (
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// The ID of a scheduled run says which schedule and due time it is, is the same whoever makes it, and can be read back as an ID.
func TestScheduledID(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	due := time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	id := task.ScheduledID("feed-pull", "nightly.pull", due.In(berlin))
	if id != task.ScheduledID("feed-pull", "nightly.pull", due) || id.String() != "feed-pull:nightly.pull.20261201T030000Z" {
		t.Errorf("the ID is %s", id)
	}
	if again, err := task.ParseID(id.String()); err != nil || again != id {
		t.Errorf("it reads back as %v, %v", again, err)
	}
	if name, at, ok := id.Schedule(); !ok || name != "nightly.pull" || !at.Equal(due) {
		t.Errorf("it is of %q at %s, %t", name, at, ok)
	}
	hand := task.ByHandID("feed-pull", "nightly.pull")
	if name, at, ok := hand.Schedule(); !ok || name != "nightly.pull" || !at.IsZero() || hand == task.ByHandID("feed-pull", "nightly.pull") {
		t.Errorf("%s is of %q at %s, %t", hand, name, at, ok)
	}
}

// No other task's ID is taken for that of a scheduled run.
func TestOtherIDsAreNotScheduled(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		task.RandomID("q").Key, "a", ".", "a.", ".20261201T030000Z", "a.20261301T030000Z", "a.20261201T030000", "A.20261201T030000Z", "a b.20261201T030000Z",
	} {
		if name, at, ok := (task.ID{Queue: "q", Key: key}).Schedule(); ok {
			t.Errorf("%q is taken for a run of %q at %s", key, name, at)
		}
	}
}
