package settings

import "fmt"

// rule is a condition on several settings of T at once.
type rule[T any] struct {
	// names are the settings that the rule looks at; the first is the one that is blamed.
	names []string
	// broken says what is wrong and what is allowed; an empty reason means that the rule holds.
	broken func(T) (reason, allowed string)
}

func queueRules() []rule[Queue] {
	return []rule[Queue]{
		{[]string{"min_workers", "max_workers"}, func(q Queue) (reason, allowed string) {
			if q.MinWorkers <= q.MaxWorkers {
				return "", ""
			}
			return fmt.Sprintf("is more than max_workers, which is %d", q.MaxWorkers), "min_workers not above max_workers"
		}},
		{[]string{"memory_soft", "memory_max"}, func(q Queue) (reason, allowed string) {
			if q.MemorySoft == 0 || q.MemoryMax == 0 || q.MemorySoft < q.MemoryMax {
				return "", ""
			}
			return fmt.Sprintf("is not below memory_max, which is %s", q.MemoryMax), "memory_soft below memory_max, or one of them off"
		}},
		{[]string{"retry_backoff", "retry_backoff_max"}, func(q Queue) (reason, allowed string) {
			if q.RetryBackoff <= q.RetryBackoffMax {
				return "", ""
			}
			return fmt.Sprintf("is more than retry_backoff_max, which is %s", FormatDuration(q.RetryBackoffMax)),
				"retry_backoff not above retry_backoff_max"
		}},
		{[]string{"max_workers", "slots", "buffer"}, func(q Queue) (reason, allowed string) {
			if q.Capacity() <= MaxCapacity {
				return "", ""
			}
			return fmt.Sprintf("makes the queue hold %d tasks (slots %d * max_workers %d + buffer %d)",
				q.Capacity(), q.Slots, q.MaxWorkers, q.Buffer), fmt.Sprintf("slots * max_workers + buffer up to %d", MaxCapacity)
		}},
	}
}
