package ledger

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// dropBatch is the move of Drop.
func (l *Ledger) dropBatch(ctx context.Context, queue string, seen []sighting) ([]Change, error) {
	names, now := task.KeysOf(queue), time.Now().UTC()
	keep := l.Retention(queue)
	if keep < time.Second {
		keep = defaultRetention
	}
	changes := make([]Change, len(seen))
	args := []any{names.TaskPrefix(), names.Record(""), names.EventsChannel(), int64(math.Ceil(keep.Seconds()))}
	var sent []int
	for i, s := range seen {
		if why := notDropped(s); why != "" {
			changes[i] = refuse(s, why)
			continue
		}
		record, _, err := s.stored.Read(s.id)
		if err != nil {
			record = &task.Task{ID: s.id}
		}
		record.State, record.Payload, record.Ended, record.RunAt, record.Manager = task.Dropped, nil, now, time.Time{}, l.Manager
		encoded, err := task.EncodeRecord(record)
		var event []byte
		if err == nil {
			event, err = task.EncodeEvents(&task.Event{ID: s.id, State: task.Dropped, At: now, Attempts: record.Attempts})
		}
		if err != nil {
			changes[i] = refuse(s, "its record cannot be written: "+err.Error())
			continue
		}
		args = append(args, s.key, s.stored.State, sum(s.stored.Message), encoded, event)
		sent = append(sent, i)
	}
	return l.run(ctx, l.drop, []string{names.Pending(), names.Scheduled(), names.Retry(), names.Archived()}, args, seen, sent, changes, task.Dropped)
}

func notDropped(s sighting) string {
	switch s.stored.State {
	case task.AsynqArchived, task.AsynqRetry, task.AsynqPending, task.AsynqScheduled:
		return ""
	case task.AsynqActive:
		return "a manager has it: cancel it first"
	case task.AsynqCompleted:
		return "it has completed; asynq removes it by itself"
	default:
		return fmt.Sprintf("it is %q, which no manager of Drover serves: use the tools of asynq", s.stored.State)
	}
}
