package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Facts are what the effects of a change on a queue depend on.
type Facts struct {
	Workers []WorkerFacts
	// Held is how many tasks wait in the manager for a worker.
	Held int
}

// WorkerFacts are those of one worker that takes tasks.
type WorkerFacts struct {
	ID      uint64
	RSS     Bytes
	Running int // tasks
	Slots   int
	Tasks   uint64 // that it has had
	Age     time.Duration
}

// Difference is one setting that changes, and what follows from it.
type Difference struct {
	Queue, Name   string
	Before, After string
	// Effect says what will happen, in words; may be empty.
	Effect string
}

// Effects compares two snapshots and says what follows from each difference. It is a pure function. Queues and schedules
// that only one of them has are left out.
func Effects(before, after *Snapshot, facts map[string]Facts) []Difference {
	all := Facts{}
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		all.Workers = append(all.Workers, facts[name].Workers...)
	}
	differences := diff("", before.Manager.Layer(), after.Manager.Layer(), ScopeManager)
	for i := range differences {
		differences[i].Effect = managerEffect(differences[i].Name, after.Manager, all)
	}
	for _, name := range slices.Sorted(maps.Keys(after.Queues)) {
		was, ok := before.Queues[name]
		if !ok {
			continue
		}
		now := after.Queues[name]
		for _, d := range diff(name, was.Layer(), now.Layer(), ScopeQueue) {
			d.Effect = queueEffect(d, was, now, facts[name])
			differences = append(differences, d)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.Schedules)) {
		was, ok := before.Schedules[name]
		if !ok {
			continue
		}
		now := after.Schedules[name]
		for _, d := range diff(OfSchedule(name), was.Layer(), now.Layer(), ScopeSchedule) {
			d.Effect = scheduleEffect(d.Name, now)
			differences = append(differences, d)
		}
	}
	return differences
}

func diff(queue string, before, after Layer, scope Scope) []Difference {
	var differences []Difference
	for _, name := range Names(scope) {
		if before[name] != after[name] {
			differences = append(differences, Difference{Queue: queue, Name: name, Before: before[name], After: after[name]})
		}
	}
	return differences
}

func managerEffect(name string, m Manager, all Facts) string {
	var rss Bytes
	for _, w := range all.Workers {
		rss += w.RSS
	}
	n := len(all.Workers)
	switch {
	case name == "max_processes" && m.MaxProcesses > 0 && n > m.MaxProcesses:
		return fmt.Sprintf("%s more than that; system queues give way, and no more are started until there are fewer", counted(n-m.MaxProcesses, "worker runs", "workers run"))
	case name == "max_processes" && m.MaxProcesses > 0:
		return fmt.Sprintf("%s now", counted(n, "worker runs", "workers run"))
	case name == "max_memory" && m.MaxMemory > 0 && rss > m.MaxMemory:
		return fmt.Sprintf("the workers have %s now, more than that; system queues give way, and no more are started until it is less", rss.about())
	case name == "max_memory" && m.MaxMemory > 0:
		return fmt.Sprintf("the workers have %s now", rss.about())
	default:
		return ""
	}
}

func queueEffect(d Difference, was, now Queue, f Facts) string {
	n := len(f.Workers)
	switch d.Name {
	case "max_workers":
		return maxWorkersEffect(now, n)
	case "min_workers":
		return minWorkersEffect(was, now, n)
	case "slots":
		if keep := other(f.Workers, now.Slots); keep > 0 {
			return fmt.Sprintf("new workers have it; %s what they have: restart %s to apply it at once", counted(keep, "worker keeps", "workers keep"), d.Queue)
		}
		return "new workers have it"
	case "buffer":
		if f.Held > now.Buffer {
			return fmt.Sprintf("%s already in the manager; no more are taken until fewer are", counted(f.Held, "task waits", "tasks wait"))
		}
	case "memory_max":
		return over(f.Workers, now.MemoryMax, "is killed now", "are killed now")
	case "memory_soft":
		return over(f.Workers, now.MemorySoft, "is replaced after its tasks", "are replaced after their tasks")
	case "worker_lifetime":
		if now.WorkerLifetime > 0 {
			return naming(f.Workers, func(w WorkerFacts) bool { return w.Age >= now.WorkerLifetime }, "is replaced after its tasks", "are replaced after their tasks")
		}
	case "worker_max_tasks":
		if now.WorkerMaxTasks > 0 {
			return naming(f.Workers, func(w WorkerFacts) bool { return w.Tasks >= uint64(now.WorkerMaxTasks) }, //nolint:gosec // not negative
				"is replaced after its next task", "are replaced after their next task")
		}
	case "worker_idle":
		return idleEffect(now, f)
	default:
		return policyEffect(d.Name, now, f)
	}
	return ""
}

// policyEffect is of those settings that mostly concern tasks to come.
func policyEffect(name string, now Queue, f Facts) string {
	running := 0
	for _, w := range f.Workers {
		running += w.Running
	}
	switch name {
	case "task_timeout":
		if running > 0 {
			return counted(running, "task that runs keeps the limit with which it began", "tasks that run keep the limit with which they began")
		}
	case "retry_backoff", "retry_backoff_max":
		return "tasks that wait for their next try keep its time"
	case "retention":
		if now.Retention == 0 {
			return "of tasks that end from now on no record is kept: who waits for one learns of its end only while it waits"
		}
		return "records that are there keep their time"
	case "lock_policy":
		return "tasks that wait for a lock go on waiting"
	case "on_dead":
		if now.OnDead != "" {
			return "for tasks that die from now on, and deaths that wait to be told; a queue that nobody serves keeps them waiting, and doctor says so"
		}
		return "deaths that wait to be told are dropped; the dead letters stay"
	case "priority":
		if now.Priority == PrioritySystem {
			return "from now on it gives way to the user queues when the manager's budget is used up"
		}
		return "from now on system queues give way to it when the manager's budget is used up"
	}
	return ""
}

func maxWorkersEffect(now Queue, n int) string {
	switch {
	case n > now.MaxWorkers:
		return counted(n-now.MaxWorkers, "worker drains", "workers drain")
	case n == now.MaxWorkers:
		return fmt.Sprintf("%s now, and no more", counted(n, "worker runs", "workers run"))
	default:
		return fmt.Sprintf("%s now; up to %d more start when there is work for them", counted(n, "worker runs", "workers run"), now.MaxWorkers-n)
	}
}

func minWorkersEffect(was, now Queue, n int) string {
	switch {
	case now.MinWorkers > n:
		return counted(now.MinWorkers-n, "worker starts", "workers start") + " now"
	case now.MinWorkers < was.MinWorkers && n > now.MinWorkers && now.WorkerIdle > 0:
		return fmt.Sprintf("idle workers above it end after %s", FormatDuration(now.WorkerIdle))
	default:
		return ""
	}
}

func idleEffect(now Queue, f Facts) string {
	idle := 0
	for _, w := range f.Workers {
		if w.Running == 0 {
			idle++
		}
	}
	idle = min(idle, len(f.Workers)-now.MinWorkers)
	if idle <= 0 || now.WorkerIdle == 0 {
		return ""
	}
	return fmt.Sprintf("%s when it has had nothing to do for %s", counted(idle, "idle worker ends", "idle workers end, each"), FormatDuration(now.WorkerIdle))
}

// other counts the workers that have another number of slots.
func other(workers []WorkerFacts, slots int) int {
	n := 0
	for _, w := range workers {
		if w.Slots != slots {
			n++
		}
	}
	return n
}

// over names the workers that have as much memory as a limit, or more.
func over(workers []WorkerFacts, limit Bytes, one, several string) string {
	if limit == 0 {
		return ""
	}
	return naming(workers, func(w WorkerFacts) bool { return w.RSS >= limit }, one, several)
}

// maxNamed is how many workers an effect names.
const maxNamed = 4

// naming names the workers for which something holds, with their memory: "worker 7 (300 MiB) is killed now".
func naming(workers []WorkerFacts, holds func(WorkerFacts) bool, one, several string) string {
	var names []string
	for _, w := range workers {
		if holds(w) {
			names = append(names, fmt.Sprintf("%d (%s)", w.ID, w.RSS.about()))
		}
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return "worker " + names[0] + " " + one
	case n > maxNamed:
		return fmt.Sprintf("workers %s and %d more %s", strings.Join(names[:maxNamed], ", "), n-maxNamed, several)
	default:
		return "workers " + strings.Join(names, ", ") + " " + several
	}
}

// counted puts a number before the words for one or for several.
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
