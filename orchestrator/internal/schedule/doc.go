// Package schedule submits the runs of schedules: one run for each due time in the whole system, however many managers hold the
// schedule, however their clocks differ, and whoever dies when.
//
// It owns the decision who fires what: every manager that holds a schedule tries each due time, and one step in Redis decides it
// once and submits the run (direct.Client.TakeTurn). What is known of a schedule lies in one hash beside its queue, for all managers
// (task.Keys.Schedule): up to which due time all is decided, the latest run, whether it is paused. There is no leader, so nothing
// has to be elected anew when a manager dies: the next due time is decided by whoever is there. Only the clock of Redis counts.
//
// It does not own when a schedule is due (package timetable), nor its settings, nor what becomes of a run: that is a task as any other.
//
//	     look: what is decided, the time of Redis
//	       |
//	+--> wait until the next due time may be run, at most lookEvery
//	|      |
//	|    take the turn ---- fired, skipped, queued, missed
//	|      |      \-------- moved, early, paused: somebody else decided, or it is not time
//	+------+
//
// Package orchestrator makes it, says which schedules there are, and runs it. Run(ctx) blocks until all its goroutines are gone; a
// step that was begun ends within callTimeout. While Redis is away it asks once a second, and what passed meanwhile is caught up or
// not, as the schedule says.
package schedule
