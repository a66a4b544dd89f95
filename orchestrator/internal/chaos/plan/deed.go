package plan

import (
	"math/rand/v2"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// Want is how a task must end.
type Want struct {
	State task.State
	// Result is true when the result must be the order's number.
	Result bool
	// Kills is how many processes it brings down by itself: 0 for the innocent, as many as it takes for poison.
	Kills int
	// Failures is how often it fails by itself.
	Failures int
}

// Innocent reports whether the task harms no process.
func (w Want) Innocent() bool { return w.Kills == 0 }

// deed is a way for a worker to behave.
type deed struct {
	name   string
	weight int // how often, among the others
	want   Want
	order  func(r *rand.Rand) map[string]any
}

// Sizes and times of deeds, against the limits of the queues.
const (
	leaked   = 160 << 20        // bytes; more than every memory_max
	tooLarge = 5 << 20          // bytes; more than a result may have
	tooLong  = 60 * time.Second // more than every task_timeout
	lingers  = time.Hour        // how long a child that is left behind would live
)

// limits that are the same in every queue, because what becomes of a task follows from them.
const (
	MaxFailures = 4
	MaxKills    = 3
)

func fixed(order map[string]any) func(*rand.Rand) map[string]any {
	return func(*rand.Rand) map[string]any {
		fresh := make(map[string]any, len(order)+1)
		for k, v := range order {
			fresh[k] = v
		}
		return fresh
	}
}

func lasting(do string, least, most int) func(*rand.Rand) map[string]any {
	return func(r *rand.Rand) map[string]any { return map[string]any{"do": do, "ms": least + r.IntN(most-least+1)} }
}

// deeds is the table of what workers do, and of how it must end.
func deeds() []deed {
	good := Want{State: task.Completed, Result: true}
	poison := Want{State: task.Quarantined, Kills: MaxKills}
	fails := Want{State: task.Dead, Failures: MaxFailures}
	onceKills := Want{State: task.Completed, Result: true, Kills: 1}
	onceFails := Want{State: task.Completed, Result: true, Failures: 1}
	once := func(order map[string]any) func(*rand.Rand) map[string]any {
		order["times"] = 1
		return fixed(order)
	}
	return []deed{
		{"return", 400, good, fixed(map[string]any{"do": "return"})},
		{"sleep", 300, good, lasting("sleep", 5, 250)},
		{"progress", 60, good, lasting("progress", 20, 200)},
		{"spin", 60, good, lasting("spin", 5, 40)},
		{"print without a newline", 30, good, fixed(map[string]any{"do": "print", "bytes": 1 << 20})},
		{"sleep, deaf to cancel", 30, good, lasting("ignore-cancel", 5, 150)},
		{"leave a child", 20, Want{State: task.Completed}, fixed(map[string]any{"do": "fork", "ms": lingers.Milliseconds()})},
		{"leave a child in its own session", 10, Want{State: task.Completed}, fixed(map[string]any{"do": "setsid", "ms": lingers.Milliseconds()})},

		{"fail once", 30, onceFails, once(map[string]any{"do": "fail"})},
		{"ask to be tried later, once", 15, onceFails, once(map[string]any{"do": "retry-after", "ms": 300})},
		{"panic once", 15, onceFails, once(map[string]any{"do": "panic", "note": "as asked"})},
		{"exit 1 once", 15, onceKills, once(map[string]any{"do": "exit", "code": 1})},
		{"leak once", 8, onceKills, once(map[string]any{"do": "leak", "bytes": leaked, "ms": tooLong.Milliseconds()})},
		{"stop itself once", 5, onceKills, once(map[string]any{"do": "stop"})},
		{"close its socket once", 8, onceKills, once(map[string]any{"do": "close-socket", "ms": tooLong.Milliseconds()})},

		{"fail", 10, fails, fixed(map[string]any{"do": "fail", "note": "as asked"})},
		{"fail for ever", 10, Want{State: task.Dead, Failures: 1}, fixed(map[string]any{"do": "permanent"})},
		{"panic", 5, fails, fixed(map[string]any{"do": "panic", "note": "as asked"})},
		{"return garbage", 5, Want{State: task.Dead, Failures: 1}, fixed(map[string]any{"do": "garbage"})},
		{"return too much", 5, Want{State: task.Dead, Failures: 1}, fixed(map[string]any{"do": "large", "bytes": tooLarge})},

		{"exit 0", 5, poison, fixed(map[string]any{"do": "exit"})},
		{"exit 1", 5, poison, fixed(map[string]any{"do": "exit", "code": 1})},
		{"leak", 3, poison, fixed(map[string]any{"do": "leak", "bytes": leaked, "ms": tooLong.Milliseconds()})},
		{"run too long, deaf to cancel", 2, poison, fixed(map[string]any{"do": "ignore-cancel", "ms": tooLong.Milliseconds()})},
		{"stop itself", 2, poison, fixed(map[string]any{"do": "stop"})},
		{"close its socket", 3, poison, fixed(map[string]any{"do": "close-socket", "ms": tooLong.Milliseconds()})},
	}
}
