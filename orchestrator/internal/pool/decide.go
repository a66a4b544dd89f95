package pool

import (
	"fmt"
	"time"
)

// Load is all that the number of processes is decided from.
type Load struct {
	Ready, Starting int // processes that take jobs, and that will
	Leaving         int // processes that take no more jobs and are still there
	Capacity        int // slots of the ready and the starting processes together
	Min, Max, Slots int // settings; Slots are those of a process that is started now
	Waiting         int // jobs in the buffer; one that needs a process of its own counts as Slots
	Running         int // jobs in ready processes; one that has its process for itself counts as all its slots
	// MeanRun is the mean time of a run; 0 when none has ended yet.
	MeanRun time.Duration
	// StartCost is how long a process takes to be ready; 0 when none has started yet.
	StartCost time.Duration
	// Stalled is for how long some job has waited without a break: also when each is soon given to a process, because as many come.
	Stalled time.Duration
	// Room is what the manager's budget, and the circuit, leave for starts.
	Room Room
}

// Room is how many processes may be started now. The zero value is no limit.
type Room struct {
	Limited   bool
	Processes int
	Why       string // there are no more, in words
}

// Decision is what to do about the number of processes, and why, in words for a person.
type Decision struct {
	Start, Stop int
	// Again is after how long to decide again although nothing has changed; 0 for no need.
	Again  time.Duration
	Reason string
}

// Decide returns how many processes to start or stop for a load. It is a pure function:
//   - never fewer than Min, never more than Max, those that leave included;
//   - never more starts than there is room for in the manager's budget of processes and memory, also for Min;
//   - one process for every Slots jobs that wait or run;
//   - but none for a backlog that those which are there will have finished before a new one is ready. That is foretold from
//     the mean run; when it does not come true, because the jobs that run now are longer, the process is started after all.
//
// Idle processes are not its matter: worker_idle ends them.
func Decide(l Load) Decision {
	have, slots := l.Ready+l.Starting, max(1, l.Slots)
	if have > l.Max {
		return Decision{Stop: have - l.Max, Reason: fmt.Sprintf("%d processes, max_workers is %d", have, l.Max)}
	}
	d := Decision{Start: max(0, l.Min-have), Reason: fmt.Sprintf("%d processes, min_workers is %d", have, l.Min)}
	homeless := min(l.Waiting, l.Waiting+l.Running-l.Capacity)
	backlog := l.backlog()
	switch {
	case homeless <= 0:
		if d.Start == 0 {
			d.Reason = fmt.Sprintf("%d tasks fit %d processes with %d slots", l.Waiting+l.Running, have, l.Capacity)
		}
	case have > 0 && l.MeanRun > 0 && backlog < l.StartCost && l.Stalled < l.StartCost:
		d.Again = l.StartCost - l.Stalled
		d.Reason = fmt.Sprintf("%d waiting tasks take about %s, a new process %s", l.Waiting, backlog.Round(time.Microsecond), l.StartCost.Round(time.Millisecond))
	default:
		if wanted := (homeless + slots - 1) / slots; wanted > d.Start {
			d.Start = wanted
			d.Reason = fmt.Sprintf("work for %d more slots than %d processes with %d have", homeless, have, l.Capacity) // a suspect takes all of one
		}
	}
	if room := max(0, l.Max-have-l.Leaving); d.Start > room {
		d.Start = room
		d.Reason = fmt.Sprintf("%s; %d are there and %d leave, max_workers is %d", d.Reason, have, l.Leaving, l.Max)
	}
	if l.Room.Limited && d.Start > l.Room.Processes {
		d.Reason = fmt.Sprintf("%s; %d are wanted and %d can be had: %s", d.Reason, d.Start, l.Room.Processes, l.Room.Why)
		d.Start = l.Room.Processes
	}
	return d
}

// backlog is how long the processes that are there will take for what waits.
func (l Load) backlog() time.Duration {
	return time.Duration(float64(l.MeanRun) * float64(l.Waiting) / float64(max(1, l.Capacity)))
}
