package job

import (
	"fmt"
	"syscall"
	"time"
)

// ExitReason says why a worker process ended.
type ExitReason string

// The reasons.
const (
	ExitIdle          ExitReason = "idle"
	ExitLifetime      ExitReason = "lifetime"
	ExitMaxTasks      ExitReason = "max-tasks"
	ExitMemorySoft    ExitReason = "memory-soft"
	ExitMemoryMax     ExitReason = "memory-max"
	ExitTaskTimeout   ExitReason = "task-timeout"
	ExitIgnoredCancel ExitReason = "ignored-cancel"
	ExitLockLost      ExitReason = "lock-lost" // a task in it had lost its lock and did not end in time
	ExitCrash         ExitReason = "crash"
	ExitPanic         ExitReason = "panic"
	ExitFailedStart   ExitReason = "failed-start"
	ExitScaleDown     ExitReason = "scale-down"
	ExitBudget        ExitReason = "budget" // a user queue needs what the manager may have
	ExitOperator      ExitReason = "operator"
	ExitReload        ExitReason = "reload"
	ExitReplaced      ExitReason = "replaced-binary"
	ExitLeft          ExitReason = "left" // by itself, with exit code 0
	ExitStop          ExitReason = "stop"
)

// ExitReasons returns every reason.
func ExitReasons() []ExitReason {
	return []ExitReason{
		ExitIdle, ExitLifetime, ExitMaxTasks, ExitMemorySoft, ExitMemoryMax, ExitTaskTimeout, ExitIgnoredCancel, ExitLockLost, ExitCrash, ExitPanic,
		ExitFailedStart, ExitScaleDown, ExitBudget, ExitOperator, ExitReload, ExitReplaced, ExitLeft, ExitStop,
	}
}

// Blames reports whether the reason is the fault of a task that was running in the process at its end. A panic is not: the
// task that caused it has reported its own end by then.
func (r ExitReason) Blames() bool {
	switch r {
	case ExitMemoryMax, ExitTaskTimeout, ExitCrash:
		return true
	default:
		return false
	}
}

// Exit is how a worker process ended.
type Exit struct {
	Reason ExitReason
	Worker uint64
	PID    int
	Code   int            // exit code; -1 when a signal ended it
	Signal syscall.Signal // 0 when none
	Age    time.Duration
	Tail   []string // the last lines it wrote
	RSS    int64    // bytes of memory of its process tree when that was last seen; 0 when it never was
	Limit  int64    // bytes of memory_max or memory_soft when it ended for that; 0 otherwise
	Note   string   // what there is to say besides, such as the memory that it had; may be empty
}

// String says it in one line, such as "worker 3 (pid 4242) ended: crash, signal killed".
func (e Exit) String() string {
	if e.Reason == ExitFailedStart {
		return "a worker did not start: " + e.Note
	}
	how := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != 0 {
		how = "signal " + e.Signal.String()
	}
	text := fmt.Sprintf("worker %d (pid %d) ended: %s, %s", e.Worker, e.PID, e.Reason, how)
	if e.Note != "" {
		text += ": " + e.Note
	}
	return text
}
