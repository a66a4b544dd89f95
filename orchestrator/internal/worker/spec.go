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
	Program string            // file to run in place of the program, which remains its name; empty for the program itself
	Dir     string            // working directory; empty is the manager's
	Env     map[string]string // besides the basics
	API     string            // address of the API for plugins; empty gives none
	Queue   string
	Options []byte // JSON object for Configure
	Slots   int
	Manager string
	// User is the name or the number of the user that the process runs as; empty for the manager's own. Only root may start
	// processes for others. They get that user's groups, and nobody else's.
	User   string
	Limits Rlimits
	// KillGrace is kill_grace as it is now, for a process that is told to go before it has had a job; 0 is a few seconds.
	KillGrace time.Duration
	// StartTimeout bounds the whole start; every call into the process after it has a bound as well.
	StartTimeout time.Duration
}

// Rlimits are what the kernel holds a process to (setrlimit(2)). They hold before its first instruction, and for its children.
// 0 leaves what the manager has, but for core dumps.
type Rlimits struct {
	OpenFiles uint64 // file descriptors of one process
	Processes uint64 // processes and threads of the user, wherever they were started; root's are not counted
	CoreSize  uint64 // bytes of a core dump; 0 is none, because a dump holds payloads and secrets
	FileSize  uint64 // bytes of a file that it writes
	CPU       time.Duration
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
