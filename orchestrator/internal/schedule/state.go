package schedule

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// forgetAfter is how long what is known of a schedule is kept when no manager has it any more.
const forgetAfter = 90 * 24 * time.Hour

var (
	//go:embed look.lua
	lookSource string
	//go:embed pause.lua
	pauseSource string
)

// State is what is known of a schedule, for all managers. Times are zero where there is nothing.
type State struct {
	// Now is the time of Redis.
	Now time.Time
	// WasOff is true when the schedule has just been switched on in this manager: what passed before is not caught up.
	WasOff bool
	// Decided is up to which all due times are decided.
	Decided time.Time
	// Queued is the due time whose run waits for the end of the earlier one, and Replace that earlier one when it is to be cancelled.
	Queued  time.Time
	Replace task.ID
	// Last is the latest run, LastDue its due time, unless it was asked for by hand, LastAt when it was submitted, LastBy by which manager.
	Last            task.ID
	LastDue, LastAt time.Time
	LastBy          string
	// Fired, Skipped and Missed count runs and due times since Redis knows of the schedule.
	Fired, Skipped, Missed int64
	// Paused is since when it is paused, and PausedBy who did that.
	Paused   time.Time
	PausedBy string
}

// read reads the state; a manager that begins with the schedule says so, and the words that the due times are made from.
func read(ctx context.Context, rdb redis.UniversalClient, spec Spec, manager, words string) (State, error) {
	keys := []string{task.KeysOf(spec.Queue).Schedule(spec.Name)}
	values, err := broker.Script(rdb, lookSource).Run(ctx, rdb, keys, int(forgetAfter/time.Second), manager, words).StringSlice()
	if err != nil {
		return State{}, fmt.Errorf("read the state of schedule %s: Redis is %w: %w", spec.Name, client.ErrUnavailable, err)
	}
	const before = 2 // the fields
	if len(values) < before {
		return State{}, errors.New("read the state of a schedule: the answer is too short")
	}
	state := stateOf(spec.Queue, values[0], values[before:])
	state.WasOff = values[1] != ""
	return state, nil
}

// stateOf reads the fields of the hash; what cannot be read is as if it were not there.
func stateOf(queue, now string, fields []string) State {
	known := make(map[string]string, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		known[fields[i]] = fields[i+1]
	}
	id := func(field string) task.ID {
		if known[field] == "" {
			return task.ID{}
		}
		return task.ID{Queue: queue, Key: known[field]}
	}
	return State{
		Now: moment(now), Decided: moment(known[task.ScheduleDecided]), Queued: moment(known[task.ScheduleQueued]),
		Replace: id(task.ScheduleReplace), Last: id(task.ScheduleLast),
		LastDue: moment(known[task.ScheduleLastDue]), LastAt: moment(known[task.ScheduleLastAt]), LastBy: known[task.ScheduleLastBy],
		Fired: number(known[task.ScheduleFired]), Skipped: number(known[task.ScheduleSkipped]), Missed: number(known[task.ScheduleMissed]),
		Paused: moment(known[task.SchedulePaused]), PausedBy: known[task.SchedulePausedBy],
	}
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func moment(text string) time.Time {
	if ms := number(text); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}
