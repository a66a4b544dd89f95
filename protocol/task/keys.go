package task

// Names of what lies in Redis. All keys of a queue share the hash tag {queue}, so that one script may touch them in a
// Cluster. The keys under "asynq:" belong to asynq v0.26.0, whose layout is tested against; those under "drover:" are ours.

// Fields of a task's asynq hash that are ours. They go when the hash goes.
const (
	FieldFailures      = "drover_failures"
	FieldKills         = "drover_kills"
	FieldInterruptions = "drover_interruptions"
	FieldLosses        = "drover_losses"
	FieldEnd           = "drover_end"      // the State in which an archived task ended, as its name
	FieldHolder        = "drover_holder"   // only of an active task: the token of the call that took it
	FieldSuspect       = "drover_suspect"  // "1" for a task that must run alone in a process
	FieldHistory       = "drover_history"  // the last runs that did not end well: see EncodeHistory
	FieldProgress      = "drover_progress" // the last event of progress of some run, encoded: see EncodeEvents
	FieldOrder         = "drover_order"    // only of a waiting task that was given back: its place among those
)

// HeaderSubmitted is the header of a task's asynq message that holds when it was submitted, in Unix milliseconds.
const HeaderSubmitted = "drover-submitted-ms"

// HeaderRetention is the header that holds for how many seconds the record of the task's end is kept, when its client said so.
const HeaderRetention = "drover-retention-s"

// Fields of the hash that holds what is known of a schedule, for all managers: see Keys.Schedule. Times are Unix milliseconds.
const (
	ScheduleWords    = "words"     // what the due times are made from; who brings other words begins anew
	ScheduleDecided  = "decided"   // all due times up to this one have been decided
	ScheduleQueued   = "queued"    // the due time whose run waits until the earlier run has ended
	ScheduleLast     = "last"      // key of the latest run's task
	ScheduleLastDue  = "last_due"  // its due time; none when it was asked for by hand
	ScheduleLastAt   = "last_at"   // when it was submitted
	ScheduleLastBy   = "last_by"   // the manager that did
	ScheduleReplace  = "replace"   // key of a run that is to be cancelled for a later one
	ScheduleFired    = "fired"     // runs that were submitted
	ScheduleSkipped  = "skipped"   // due times that were not run because the earlier run had not ended
	ScheduleMissed   = "missed"    // due times that passed while no manager was there
	SchedulePaused   = "paused"    // since when it is paused; none while it is not
	SchedulePausedBy = "paused_by" // who paused it
	ScheduleOff      = "off:"      // and a manager's name: it has the schedule, but switched off
)

// AsynqQueuesKey is the set of all queue names.
const AsynqQueuesKey = "asynq:queues"

// Keys names the keys of one queue.
type Keys struct {
	asynq  string
	drover string
}

// KeysOf returns the names for a queue.
func KeysOf(queue string) Keys {
	return Keys{asynq: "asynq:{" + queue + "}:", drover: "drover:{" + queue + "}:"}
}

// TaskPrefix is what the key of a task's hash begins with; the task's key follows.
func (k Keys) TaskPrefix() string { return k.asynq + "t:" }

// Task is the hash of one task: msg, state, pending_since and our fields.
func (k Keys) Task(key string) string { return k.asynq + "t:" + key }

// Pending is the list of tasks that may run; its right end is the head of the queue.
func (k Keys) Pending() string { return k.asynq + "pending" }

// Active is the list of tasks that a manager has taken.
func (k Keys) Active() string { return k.asynq + "active" }

// Lease is the sorted set of active tasks by the Unix second at which their lease ends.
func (k Keys) Lease() string { return k.asynq + "lease" }

// Scheduled is the sorted set of delayed tasks by the Unix second at which they are due.
func (k Keys) Scheduled() string { return k.asynq + "scheduled" }

// Retry is the sorted set of failed tasks by the Unix second at which they are due.
func (k Keys) Retry() string { return k.asynq + "retry" }

// Archived is the sorted set of dead letters by the Unix second of their death.
func (k Keys) Archived() string { return k.asynq + "archived" }

// CompletedSet is the sorted set of completed tasks that asynq keeps; only tasks of foreign clients with a retention get there.
func (k Keys) CompletedSet() string { return k.asynq + "completed" }

// Paused exists while the queue is paused.
func (k Keys) Paused() string { return k.asynq + "paused" }

// Processed is the counter of ended runs; with ":yyyy-mm-dd" behind it, of one day.
func (k Keys) Processed() string { return k.asynq + "processed" }

// FailedRuns is the counter of failed runs; with ":yyyy-mm-dd" behind it, of one day.
func (k Keys) FailedRuns() string { return k.asynq + "failed" }

// Record is the terminal record of one task.
func (k Keys) Record(key string) string { return k.drover + "r:" + key }

// Entry is what managers publish about the queue itself: see Entry.
func (k Keys) Entry() string { return k.drover + "queue" }

// Deaths is the list of what is to be told of dead letters and has not been, the latest first: see on_dead.
func (k Keys) Deaths() string { return k.drover + "deaths" }

// EventsChannel is where ends, failures and progress of the queue's tasks are published: see EncodeEvents.
func (k Keys) EventsChannel() string { return k.drover + "events" }

// WakeChannel is where a submit into an empty queue is announced.
func (k Keys) WakeChannel() string { return k.drover + "wake" }

// CancelChannel is where the key of an active task is announced that is to be cancelled.
func (k Keys) CancelChannel() string { return k.drover + "cancel" }

// Schedule is the hash of one schedule of the queue, by its name.
func (k Keys) Schedule(name string) string { return k.drover + "s:" + name }
