package job

import (
	"time"

	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// End says how a job's run in this process ended.
type End int

// The ways a run ends.
const (
	Succeeded   End = iota + 1 // the worker returned a result
	Faulted                    // the worker, or the check before it, reported a fault
	Killed                     // the process died or was killed, and this job is to blame, or may be: see Outcome.Suspect
	Interrupted                // the run was stopped and nobody is to blame
	Cancelled                  // stopped on request
	Expired                    // its client's deadline passed before it had ended: nobody is to blame
	Returned                   // never began; with a pause before it comes back when the fault asks for one
)

// Outcome is what came of a job in this process.
type Outcome struct {
	End    End
	Result []byte       // JSON, when it succeeded
	Fault  *fault.Fault // when it faulted or was killed; may say why it was interrupted
	// Started is when the worker got it; zero when it never did. Ended is when its end was known.
	Started, Ended time.Time
	// Worker is the number of the worker that ran it; 0 for none.
	Worker uint64
	// Suspect is true for a job that was killed with others in its process, of which nobody knows which brought it down. It
	// costs the task nothing, and the task's next run is one as a suspect.
	Suspect bool
	// Loose is true when the worker gave the run up without being asked to: until its process is gone, it may still be at work.
	Loose bool
	// Tail is the last lines that the process wrote during the run; when it ran others too, theirs may be among them.
	Tail []string
	// Exit is the end of the process that the run ended with; nil when the process went on, or there was none.
	Exit *Exit
}

// Move is where in Redis a job goes.
type Move int

// The moves.
const (
	Finish   Move = iota + 1 // out of the queue
	Retry                    // back into the queue at RetryAt
	Bury                     // among the dead letters
	GiveBack                 // to the head of the queue
	Defer                    // back into the queue at RetryAt, at no cost
)

// Hook is a task that tells of a dead letter.
type Hook struct {
	Queue   string `json:"queue"`
	Payload []byte `json:"payload"` // JSON
}

// Verdict is what becomes of a job. The controller decides it, intake carries it out.
type Verdict struct {
	Move     Move
	State    task.State     // the task's state afterwards
	Counters task.Counters  // as they are from now on
	Suspect  bool           // whether the next run is one as a suspect
	RetryAt  time.Time      // for Retry and Defer
	History  []task.Attempt // as it is from now on
	Reason   string         // for people: the last error; empty when there is none
	// Record is the terminal record; nil when the task has not ended. It is kept for KeepFor; not at all when that is 0.
	Record  *task.Task
	KeepFor time.Duration
	// Hook is what is put into another queue because the task has died; nil for nothing.
	Hook *Hook
	// Event is published once the move is made; nil publishes nothing.
	Event *task.Event
}
