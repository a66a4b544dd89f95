package plan

import (
	"fmt"
	"time"
)

// Queue is one queue of every manager, with limits that differ from those of the others.
type Queue struct {
	Name string
	// Locked is true when its tasks have lock keys.
	Locked bool
	// Settings are those that stay as they are, as they stand in a configuration.
	Settings string
	// Variants are more settings; a manager begins with the first, and a reload takes another.
	Variants []string
	// Timeout and Grace are its task_timeout and kill_grace.
	Timeout, Grace time.Duration
}

// Queues returns the queues of a run, whose times are those of a long run divided by haste; those with locks only when there are
// locks. They share their keys.
func Queues(locks bool, haste time.Duration) []Queue {
	const every = "max_failures: %d, max_kills: %d, retry_backoff: 100ms, retry_backoff_max: 1s, retention: 1h, memory_max: 96MiB, task_timeout: %s, kill_grace: %s"
	queue := func(name string, timeout, grace time.Duration, more string, variants ...string) Queue {
		timeout, grace = timeout/haste, grace/haste
		return Queue{
			Name: name, Timeout: timeout, Grace: grace, Variants: variants,
			Settings: fmt.Sprintf(every, MaxFailures, MaxKills, timeout, grace) + more,
		}
	}
	all := []Queue{
		queue("plain", 3*time.Second, 300*time.Millisecond, "",
			"max_workers: 3, buffer: 8", "max_workers: 1, buffer: 0", "max_workers: 4, min_workers: 1, buffer: 32"),
		queue("wide", 4*time.Second, 500*time.Millisecond, ", memory_soft: 64MiB",
			"max_workers: 2, slots: 8, buffer: 16", "max_workers: 3, slots: 4, buffer: 4", "max_workers: 1, slots: 16, buffer: 64"),
		queue("brief", 2*time.Second, 100*time.Millisecond, ", worker_max_tasks: 15, worker_lifetime: 5s",
			"max_workers: 2, slots: 2, worker_idle: 300ms", "max_workers: 1, slots: 1, worker_idle: 10s", "max_workers: 2, slots: 3, worker_idle: 100ms"),
	}
	if locks {
		join := queue("join", 3*time.Second, 300*time.Millisecond, ", lock_policy: join",
			"max_workers: 2, slots: 4, buffer: 16", "max_workers: 3, slots: 1, buffer: 32")
		back := queue("return", 3*time.Second, 300*time.Millisecond, ", lock_policy: return",
			"max_workers: 2, slots: 2, buffer: 16", "max_workers: 1, slots: 4, buffer: 8")
		join.Locked, back.Locked = true, true
		all = append(all, join, back)
	}
	return all
}
