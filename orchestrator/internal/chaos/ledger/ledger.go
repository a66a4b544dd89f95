// Package ledger reads what the worker program misbehave wrote down about what it did: the effects of tasks, known independently of
// any manager and of Redis. It owns the format's reading side only; the program's documentation has the format.
package ledger

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/drover-jobs/drover/protocol/task"
)

// Run is one run of one task, as its process saw it. Times are nanoseconds of the kernel's monotonic clock.
type Run struct {
	ID      task.ID
	Attempt int
	PID     int
	Manager int // process number of the manager; 1 when that had died already
	Lock    string
	Begin   int64
	// Last is when it was last known to run: its end, its last beat, or its begin.
	Last int64
	// Ended is true when the handler returned; Done when it returned a value.
	Ended, Done bool
}

// Read returns the runs in the order of their begins. A line is one write, so none is cut off by the death of its process.
func Read(r io.Reader) ([]Run, error) {
	type key struct {
		id      task.ID
		attempt int
		pid     int
	}
	var runs []*Run
	open := map[key]*Run{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		var what, id, lock string
		var run Run
		var at int64
		if _, err := fmt.Sscanf(lines.Text(), "%s %s %d %d %d %d %q", &what, &id, &run.Attempt, &run.PID, &run.Manager, &at, &lock); err != nil {
			return nil, fmt.Errorf("line %d of the ledger, %q: %w", n, lines.Text(), err)
		}
		parsed, err := task.ParseID(id)
		if err != nil {
			return nil, fmt.Errorf("line %d of the ledger: %w", n, err)
		}
		run.ID, run.Lock, run.Begin, run.Last = parsed, lock, at, at
		k := key{parsed, run.Attempt, run.PID}
		if what == "begin" {
			fresh := run
			runs = append(runs, &fresh)
			open[k] = &fresh
			continue
		}
		known := open[k]
		if known == nil {
			return nil, fmt.Errorf("line %d of the ledger: %s without a begin", n, strings.TrimSpace(lines.Text()))
		}
		known.Last = max(known.Last, at)
		known.Ended = known.Ended || what == "end" || what == "fail"
		known.Done = known.Done || what == "end"
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	all := make([]Run, len(runs))
	for i, run := range runs {
		all[i] = *run
	}
	return all, nil
}
