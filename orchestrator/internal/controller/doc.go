// Package controller decides what becomes of a job, and only it does: each job exactly once.
//
//	outcome --judge--> verdict: its move in Redis, its counters, its terminal record, its event
//
// The judgement is a pure function of the outcome, the task's counters and the queue's settings (judge.go). Intake carries the
// verdict out in one script with the record and the event, so that an end is stored and published once or not at all.
// Progress of running tasks is published from here, at most ten times a second a task. The controller keeps the counts
// of ends and the times of the latest runs that the status shows (times.go). Run(ctx) publishes until ctx ends.
package controller
