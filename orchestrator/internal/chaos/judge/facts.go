// Package judge says whether a chaos run has kept what Drover promises. Judge is a pure function of Facts, which were gathered
// independently of each other: what was ordered, what the records say, what was published, what the workers wrote down themselves,
// what was done to processes, and what was left of everything.
//
// What it allows because of a fault, and why, stands beside each invariant.
package judge

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/actor"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/ledger"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
	"github.com/drover-jobs/drover/protocol/task"
)

// Submission is a task that was accepted.
type Submission struct {
	ID    task.ID
	Order plan.Order
	// Doubtful is how many more times it may have been accepted: the answer to a submit was lost.
	Doubtful int
}

// Numbers are what Redis says of a queue.
type Numbers struct {
	Pending, Active, Lease, Scheduled, Retry, Archived int64
	Processed, Failed                                  int64
	Records                                            int64
}

// Facts are all that is known of a run.
type Facts struct {
	Submissions []Submission
	Records     map[task.ID]*task.Task // terminal records, as Redis has them at the end
	Ends        map[task.ID]int        // ends that were published
	Answers     map[task.ID]int        // ends that subscriptions yielded
	Runs        []ledger.Run
	Injuries    []actor.Injury  // what was done to workers
	Freezes     []Freeze        // of managers
	Outages     []Freeze        // of Redis, by kill or freeze
	Orphans     []actor.Orphans // after each kill of a manager
	Stops       []actor.Stop
	Numbers     map[string]Numbers // by queue
	Locks       []string           // what is left of locks
	Processes   []actor.Found      // what is left of everything
	Dirs        []string           // directories of sockets that are left
	Crashes     []string           // processes that ended and should not have
	Problems    []string           // what the harness itself could not do
	Bounds      Bounds
}

// Freeze is a time in which a process was stopped.
type Freeze struct {
	PID      int
	From, To int64
}

// Bounds are the times that are promised.
type Bounds struct {
	Stop time.Duration // from SIGTERM to the end: drain_timeout + 2 s
	// Lease is for how long a lock is kept for a holder that does not renew it.
	Lease time.Duration
}
