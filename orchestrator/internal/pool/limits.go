package pool

import (
	"fmt"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// Facts are what Limits looks at.
type Facts struct {
	Load
	Decision
	Held     int // jobs in the buffer
	Jobs     int // jobs in processes
	Suspects int // jobs in the buffer that each need a process for themselves
	Most     int // jobs that the queue may have in this manager
	Stopping bool
	Budget   string // why the budget gives no more; empty when it does
	Refused  string // why the last replacement was given up; empty when it was not
	Rate     settings.Rate
	NextTask time.Duration // until the rate lets the next begin

	Paused    bool          // nothing can be started, and nothing runs
	Failures  int           // starts that failed in a row
	Trouble   string        // what fails, such as "workers do not start"
	Failure   string        // why the latest did
	NextStart time.Duration // until the next is tried
}

// Limits says what keeps a queue from doing more now, in words for a person, the most important first. It is a pure function; empty
// when nothing does.
func Limits(f Facts) []string {
	var limits []string
	add := func(is bool, format string, args ...any) {
		if is {
			limits = append(limits, fmt.Sprintf(format, args...))
		}
	}
	short := f.Held > 0 || f.Ready+f.Starting < f.Min
	add(f.Stopping, "the manager stops, and takes nothing more")
	add(f.Paused, "circuit: %s, the next is tried in %s: %s", f.Trouble, f.NextStart.Round(time.Millisecond), f.Failure)
	add(!f.Paused && f.Failures > 0 && f.Failure != "", "circuit: %s, %d in a row by now, and the next is tried in %s: %s", f.Trouble, f.Failures, f.NextStart.Round(time.Millisecond), f.Failure)
	add(f.Budget != "", "budget: %s", f.Budget)
	add(f.Held > 0 && !f.Rate.Off() && f.NextTask < time.Hour, "rate: %s, the next task may begin in %s", f.Rate, f.NextTask.Round(time.Millisecond))
	add(f.Held > 0 && f.Starting == 0 && f.Ready+f.Leaving >= f.Max && f.Running >= f.Capacity, "workers: the %d slots of %d workers are taken%s, and max_workers is %d", f.Capacity, f.Ready, f.leaving(), f.Max)
	add(f.Held > 0 && f.Starting > 0, "workers: %d are being started, which takes about %s", f.Starting, f.StartCost.Round(time.Millisecond))
	add(short && f.Again > 0, "workers: %s", f.Reason)
	add(f.Suspects > 0, "suspects: a worker died with %d of these tasks, and each waits for a worker for itself", f.Suspects)
	add(f.Held > 0 && f.Held+f.Jobs >= f.Most, "buffer: %d tasks are here, and slots * max_workers + buffer is %d", f.Held+f.Jobs, f.Most)
	add(f.Refused != "", "replacement: the old workers stay, because a new one did not start: %s", f.Refused)
	return limits
}

// leaving says how many workers are on their way out, if any are.
func (f Facts) leaving() string {
	if f.Leaving == 0 {
		return ""
	}
	return fmt.Sprintf(", %d more leave", f.Leaving)
}
