package job

import "time"

// Limits are what a run in a process is held to. They may differ from job to job, because settings change live.
type Limits struct {
	TaskTimeout time.Duration // 0 is none
	KillGrace   time.Duration // between asking a run to end and killing its process
}

// Unfinished is a job that was in a process when the process ended.
type Unfinished struct {
	Job     *Job
	Started time.Time
	// Guilty is true for the job that the process was killed for, when that is known.
	Guilty bool
	// Unbegun is true for a job of which the process never said that it had begun.
	Unbegun bool
	// Cancelled is true for a job that had been asked to end for its client.
	Cancelled bool
}
