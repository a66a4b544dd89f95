package task

import (
	"slices"

	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// Reasons are all that dead letters may be asked for by, sorted: the names of the fault kinds, why a worker's process ends, and the states
// of dead letters.
func Reasons() []string {
	names := []string{
		Dead.String(), Quarantined.String(), Expired.String(),
		"idle", "lifetime", "max-tasks", "memory-soft", "memory-max", "task-timeout", "ignored-cancel", "lock-lost", "crash", "panic",
		"failed-start", "scale-down", "budget", "operator", "reload", "replaced-binary", "left", "stop",
	}
	for number := range taskv1.FaultKind_name {
		if name := fault.Kind(number).String(); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// DiedFor is what a dead letter died for, in the words of Reasons: its state, the kind of its last failure, and why the process of its last
// run ended, if it did.
func (t *Task) DiedFor() []string {
	why := []string{t.State.String()}
	if t.Fault != nil {
		why = append(why, t.Fault.Kind.String())
	}
	if n := len(t.History); n > 0 && t.History[n-1].Exit != "" {
		why = append(why, t.History[n-1].Exit)
	}
	return why
}
