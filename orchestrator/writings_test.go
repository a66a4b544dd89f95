package orchestrator

import (
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
)

// What the latest workers wrote outlives them; what those before them wrote is forgotten, so that a manager that runs for months
// keeps a bounded amount. Those that live are kept, however many there are.
func TestWritingsOfEndedWorkers(t *testing.T) {
	t.Parallel()
	w := newWritings()
	const workers, living = 1000, 3
	for n := range uint64(workers) {
		w.began(n+1, "q", &worker.Logs{})
		if n >= living {
			w.end(job.Exit{Worker: n + 1, Reason: job.ExitIdle})
			w.end(job.Exit{Worker: n + 1, Reason: job.ExitCrash}) // told twice, it is one
		}
	}
	w.end(job.Exit{Reason: job.ExitFailedStart})
	if len(w.of) != living+endedKept || len(w.ended) != endedKept {
		t.Errorf("%d are kept, %d of them ended", len(w.of), len(w.ended))
	}
	if _, end, ok := w.find(1); !ok || end != "" {
		t.Errorf("one that lives: %q, %t", end, ok)
	}
	if _, end, ok := w.find(workers); !ok || end == "" {
		t.Errorf("the latest: %q, %t", end, ok)
	}
	if _, _, ok := w.find(workers - endedKept); ok {
		t.Error("one of long ago is kept")
	}
}
