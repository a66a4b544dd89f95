package conform

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// Life is one life of the worker, from its start to its end.
type Life interface {
	// Service is the worker's own.
	Service() workerv1.WorkerServiceClient
	// Exited is closed when the worker has ended.
	Exited() <-chan struct{}
	// Exit waits for that and returns the exit code; the error says that it ended in another way.
	Exit() (code int, err error)
	// Close ends the worker, if it has not ended, and frees everything.
	Close()
}

// Process is a Life that is a process of its own. More can be tested with one.
type Process interface {
	Life
	// Terminate sends SIGTERM.
	Terminate() error
	// CutLifeline does what a manager's death does to the lifeline.
	CutLifeline()
	// LeavesBehind reports whether anything of its process group is alive.
	LeavesBehind() bool
	// Written is the number of bytes that it has written on its standard streams, Output the first and the latest of them.
	Written() int64
	Output() string
}

// Subject is the worker under test and what is known about it.
type Subject struct {
	// Start begins a life.
	Start func(ctx context.Context) (Life, error)
	// Inherit begins a life with this process's whole environment, to find out whether that is what a worker lacks; it may be nil.
	Inherit func(ctx context.Context) (Life, error)
	// Queue is the queue's name; empty for the worker's own.
	Queue string
	// Options are the plugin's own options, a JSON object; empty for none.
	Options json.RawMessage
	// Slots is how many tasks the worker gets at once; 0 for what its manifest says.
	Slots int
	// Payloads are payloads that the worker accepts; without one, a payload is made from its schema.
	Payloads []json.RawMessage
	// Slow is a payload whose task takes long, some seconds at least; Noisy one whose task writes 1 MiB or more on a standard
	// stream without a line's end; Panic one whose task panics, or kills its program. Without them something is not tested.
	Slow, Noisy, Panic json.RawMessage
	// TaskTimeout bounds a task; 0 means DefaultTaskTimeout.
	TaskTimeout time.Duration
	// EndTimeout bounds how long the worker takes to end when it has nothing left to do; 0 means DefaultEndTimeout.
	EndTimeout time.Duration
}

// Bounds for which nobody asked for others.
const (
	DefaultTaskTimeout = 30 * time.Second
	DefaultEndTimeout  = 10 * time.Second
)

// State is what became of a check.
type State string

// The states of a check.
const (
	Pass      State = "pass"
	Fail      State = "fail"
	NotTested State = "not_tested"
)

// Result is what one check found out.
type Result struct {
	// Check is one word that stays the same.
	Check string `json:"check"`
	State State  `json:"state"`
	// Expected is what the worker owes its manager.
	Expected string `json:"expected"`
	// Seen is what happened, or why it was not tested.
	Seen string `json:"seen,omitempty"`
	// Advice is what to do about it.
	Advice string `json:"advice,omitempty"`
	// Took is how long it took.
	Took time.Duration `json:"-"`
}

// verdict is what a check itself says.
type verdict struct {
	state        State
	seen, advice string
}

func pass(seen string) verdict         { return verdict{state: Pass, seen: seen} }
func fail(seen, advice string) verdict { return verdict{state: Fail, seen: seen, advice: advice} }
func skip(why string) verdict          { return verdict{state: NotTested, seen: why} }
