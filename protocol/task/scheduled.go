package task

import (
	"strings"
	"time"
)

// The form of the time in a scheduled task's key, in UTC, and what stands before it in the key of a run by hand.
const (
	scheduledTime = "20060102T150405Z"
	byHand        = "by-hand-"
)

// ScheduledID names the run of a schedule at a due time, which is a whole second: there is one such task, whoever submits it.
func ScheduledID(queue, schedule string, due time.Time) ID {
	return ID{Queue: queue, Key: schedule + "." + due.UTC().Format(scheduledTime)}
}

// ByHandID names a run of a schedule that somebody asked for.
func ByHandID(queue, schedule string) ID {
	return ID{Queue: queue, Key: schedule + "." + byHand + RandomID(queue).Key}
}

// Schedule returns the schedule that submitted the task, as its ID says, and the due time, which is zero for a run by hand. It is not ok
// for other tasks.
func (id ID) Schedule() (schedule string, due time.Time, ok bool) {
	at := strings.LastIndexByte(id.Key, '.')
	if at < 0 || CheckName(id.Key[:at]) != nil {
		return "", time.Time{}, false
	}
	schedule, run := id.Key[:at], id.Key[at+1:]
	if strings.HasPrefix(run, byHand) {
		return schedule, time.Time{}, true
	}
	due, err := time.Parse(scheduledTime, run)
	return schedule, due, err == nil
}
