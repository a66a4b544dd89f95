package judge

import (
	"maps"
	"slices"

	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

func orphaned(c *Case, f *Finding) {
	for _, o := range c.Orphans {
		f.Checked++
		for _, p := range o.Left {
			f.breach("%s after manager %s was killed process %d lives: %s", o.After, o.Manager, p.PID, p.Command)
		}
	}
}

func leftovers(c *Case, f *Finding) {
	f.Checked = 3
	for _, p := range c.Processes {
		f.breach("process %d of parent %d is left: %s", p.PID, p.Parent, p.Command)
	}
	for _, dir := range c.Dirs {
		f.breach("the directory of sockets %s is left", dir)
	}
	for _, lock := range c.Locks {
		f.breach("a lock is left: %s", lock)
	}
}

func emptied(c *Case, f *Finding) {
	for _, queue := range slices.Sorted(maps.Keys(c.Numbers)) {
		n := c.Numbers[queue]
		for name, left := range map[string]int64{
			"pending": n.Pending, "active": n.Active, "leases": n.Lease, "scheduled": n.Scheduled, "retry": n.Retry,
		} {
			f.Checked++
			if left != 0 {
				f.breach("queue %s has %d in %s", queue, left, name)
			}
		}
	}
}

// expected is what the numbers of a queue must be.
type expected struct {
	records, archived         int64
	leastProcessed, processed int64
	leastFailed, failed       int64
}

// agreed compares the numbers of each queue with what the records say. One run of a task that ended counts as processed when
// it completed, failed or was buried, not when it was given back: so a kill counts only when it was the last. For a dead task
// both are possible. A doubtful submit may have had a life more, which left its numbers and not its record.
func agreed(c *Case, f *Finding) {
	want := map[string]*expected{}
	for queue := range c.Numbers {
		want[queue] = &expected{}
	}
	for _, s := range c.Submissions {
		w, r := want[s.ID.Queue], c.Records[s.ID]
		if w == nil || r == nil {
			continue
		}
		w.add(r)
		w.processed += int64(s.Doubtful * (1 + r.Counters.Failures))
		w.failed += int64(s.Doubtful * (1 + r.Counters.Failures))
	}
	for _, queue := range slices.Sorted(maps.Keys(c.Numbers)) {
		n, w := c.Numbers[queue], want[queue]
		f.Checked += 4
		if n.Records != w.records {
			f.breach("queue %s has %d records of %d tasks", queue, n.Records, w.records)
		}
		if n.Archived != w.archived {
			f.breach("queue %s keeps %d dead tasks, want %d", queue, n.Archived, w.archived)
		}
		if n.Processed < w.leastProcessed || n.Processed > w.processed {
			f.breach("queue %s has processed %d runs, want %d to %d", queue, n.Processed, w.leastProcessed, w.processed)
		}
		if n.Failed < w.leastFailed || n.Failed > w.failed {
			f.breach("queue %s has %d failed runs, want %d to %d", queue, n.Failed, w.leastFailed, w.failed)
		}
	}
}

func (w *expected) add(r *task.Task) {
	w.records++
	failed := int64(r.Counters.Failures)
	completed, uncertain := int64(0), int64(0)
	switch r.State {
	case task.Completed:
		completed = 1
	case task.Quarantined:
		w.archived++
		failed++
	case task.Dead:
		w.archived++
		if r.Fault != nil && (r.Fault.Kind == fault.Crash || r.Fault.Kind == fault.Memory) {
			failed++
		} else if r.Counters.Kills > 0 {
			uncertain = 1
		}
	default: // nothing else is expected, and asOrdered says so
	}
	w.leastFailed += failed
	w.failed += failed + uncertain
	w.leastProcessed += completed + failed
	w.processed += completed + failed + uncertain
}
