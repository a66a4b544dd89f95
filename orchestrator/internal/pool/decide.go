package pool

import (
	"fmt"
	"time"
)

// Load is all that the number of processes is decided from.
type Load struct {
	Ready, Starting int // processes
	Min, Max, Slots int // settings
	Waiting         int // jobs in the buffer
	Running         int // jobs in processes
	// MeanRun is the mean time of a run; 0 when none has ended yet.
	MeanRun time.Duration
	// StartCost is how long a process takes to be ready; 0 when none has started yet.
	StartCost time.Duration
}

// Decision is what to do about the number of processes, and why, in words for a person.
type Decision struct {
	Start, Stop int
	Reason      string
}

// Decide returns how many processes to start or stop for a load. It is a pure function:
//   - never fewer than Min, never more than Max;
//   - one process for every Slots jobs that wait or run;
//   - but none for a backlog that those which are there will have finished before a new one is ready.
//
// Idle processes are not its matter: worker_idle ends them.
func Decide(l Load) Decision {
	have := l.Ready + l.Starting
	switch {
	case have > l.Max:
		return Decision{Stop: have - l.Max, Reason: fmt.Sprintf("%d processes, max_workers is %d", have, l.Max)}
	case have < l.Min:
		return Decision{Start: l.Min - have, Reason: fmt.Sprintf("%d processes, min_workers is %d", have, l.Min)}
	}
	slots := max(1, l.Slots)
	missing := l.Waiting + l.Running - have*slots
	if missing <= 0 {
		return Decision{Reason: fmt.Sprintf("%d jobs fit %d processes of %d slots", l.Waiting+l.Running, have, slots)}
	}
	if have >= l.Max {
		return Decision{Reason: fmt.Sprintf("%d jobs wait; max_workers %d is reached", l.Waiting, l.Max)}
	}
	if have > 0 && l.MeanRun > 0 && l.StartCost > 0 {
		backlog := time.Duration(l.Waiting) * l.MeanRun / time.Duration(have*slots)
		if backlog < l.StartCost {
			return Decision{Reason: fmt.Sprintf("%d waiting jobs take about %s, a new process %s", l.Waiting, backlog.Round(time.Microsecond), l.StartCost.Round(time.Millisecond))}
		}
	}
	wanted := (missing + slots - 1) / slots
	start := min(wanted, l.Max-have)
	return Decision{Start: start, Reason: fmt.Sprintf("%d jobs do not fit %d processes of %d slots", missing, have, slots)}
}
