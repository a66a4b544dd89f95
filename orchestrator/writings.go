package orchestrator

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
)

// endedKept is of how many ended workers the output is kept: the latest, up to 70 KiB of each.
const endedKept = 32

// writings are what the workers of a manager wrote: all that live, and the latest that have ended.
type writings struct {
	mu    sync.Mutex
	of    map[uint64]*writing
	ended []uint64 // the latest last
}

// writing is what one worker wrote.
type writing struct {
	logs  *worker.Logs
	queue string
	exit  job.Exit
	at    time.Time // of its end; zero while it lives
}

func newWritings() *writings { return &writings{of: map[uint64]*writing{}} }

// began takes note of a worker.
func (w *writings) began(number uint64, queue string, logs *worker.Logs) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[number] = &writing{logs: logs, queue: queue}
}

// end takes note of a worker's end, and forgets those that ended long before.
func (w *writings) end(exit job.Exit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.of[exit.Worker]
	if found == nil || !found.at.IsZero() { // a start that failed has no number
		return
	}
	found.exit, found.at = exit, time.Now()
	w.ended = append(w.ended, exit.Worker)
	if n := len(w.ended) - endedKept; n > 0 {
		for _, old := range w.ended[:n] {
			delete(w.of, old)
		}
		w.ended = slices.Delete(w.ended, 0, n)
	}
}

// find returns what a worker wrote, and how it ended; "" while it lives.
func (w *writings) find(number uint64) (logs *worker.Logs, end string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.of[number]
	if found == nil {
		return nil, "", false
	}
	if !found.at.IsZero() {
		end = fmt.Sprintf("%s (queue %s, at %s)", found.exit, found.queue, found.at.UTC().Format(time.DateTime+" UTC"))
	}
	return found.logs, end, true
}
