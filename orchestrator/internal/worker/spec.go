package worker

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// Spec is what a process is started with.
type Spec struct {
	Plugin  string            // for messages
	Command []string          // program and arguments; no shell
	Dir     string            // working directory; empty is the manager's
	Env     map[string]string // besides the basics
	API     string            // address of the API for plugins; empty gives none
	Queue   string
	Options []byte // JSON object for Configure
	Slots   int
	Manager string
	// StartTimeout bounds the whole start; every call into the process after it has a bound as well.
	StartTimeout time.Duration
}

// Sink is told what happens in a process. Its calls come from the process's own goroutines and must not block for long.
type Sink interface {
	// Finished is called once for every job sent, unless the process ends first.
	Finished(worker uint64, j *job.Job, o job.Outcome)
	// Progressed is called for progress of a running job.
	Progressed(j *job.Job, progress task.Progress)
	// Exited is called once, after the last Finished, when the process has been collected; the unfinished are in
	// the order in which they were sent.
	Exited(exit job.Exit, unfinished []job.Unfinished)
}
