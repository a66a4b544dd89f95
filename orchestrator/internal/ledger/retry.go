package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// retryBatch is the move of Retry.
func (l *Ledger) retryBatch(ctx context.Context, queue string, seen []sighting) ([]Change, error) {
	names, now := task.KeysOf(queue), time.Now()
	changes := make([]Change, len(seen))
	args := []any{names.TaskPrefix(), names.Record(""), names.EventsChannel(), names.WakeChannel(), now.UnixNano()}
	var sent []int
	for i, s := range seen {
		if why := notRetried(s); why != "" {
			changes[i] = refuse(s, why)
			continue
		}
		t, message, err := s.stored.Read(s.id)
		if err != nil { // it will die again, but not by us
			t, message = &task.Task{ID: s.id}, nil
		}
		var encoded []byte
		suspect := ""
		if s.stored.State == task.AsynqArchived {
			if message != nil {
				message.Retried = 0
				if t.State == task.Expired || message.Deadline > 0 && message.Deadline <= now.Unix() {
					message.DropDeadline() // it would expire at once
				}
				encoded = message.Encode()
			}
			if t.State == task.Quarantined {
				suspect = "1" // it killed its processes: it may not take others with it
			}
			t.Attempts = 0
		}
		event, err := task.EncodeEvents(&task.Event{ID: s.id, State: task.Waiting, At: now.UTC(), Attempts: t.Attempts})
		var mark []byte
		if err == nil {
			mark, err = task.EncodeHistory([]task.Attempt{{Number: t.Attempts, Manager: l.Manager, Started: now, End: task.EndRetried}})
		}
		if err != nil {
			changes[i] = refuse(s, "its ID cannot be written: "+err.Error())
			continue
		}
		args = append(args, s.key, s.stored.State, sum(s.stored.Message), encoded, suspect, event, mark)
		sent = append(sent, i)
	}
	return l.run(ctx, l.retry, []string{names.Pending(), names.Retry(), names.Archived()}, args, seen, sent, changes, task.Waiting)
}

func notRetried(s sighting) string {
	switch s.stored.State {
	case task.AsynqArchived, task.AsynqRetry:
		return ""
	case task.AsynqPending:
		return "it waits to be run already"
	case task.AsynqScheduled:
		return "it has not failed: it waits for its time"
	case task.AsynqActive:
		return "it is being run"
	case task.AsynqCompleted:
		return "it has completed"
	default:
		return fmt.Sprintf("it is %q, which no manager of Drover serves: use the tools of asynq", s.stored.State)
	}
}
