package lock_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// nowhere takes jobs and forgets them.
type nowhere struct{}

func (nowhere) Capacity() int                     { return 1 }
func (nowhere) Offer(*job.Job)                    {}
func (nowhere) Cancel(*job.Job)                   {}
func (nowhere) Interrupt(*job.Job, time.Duration) {}
func (nowhere) End(*job.Job, job.Outcome)         {}

// BenchmarkOfferWithoutKey is what a task of a plugin without a lock key pays for passing by: its offer and its end.
func BenchmarkOfferWithoutKey(b *testing.B) {
	l := lock.New(lock.Deps{Ender: nowhere{}, Manager: "m", Log: slog.New(slog.DiscardHandler)})
	q := l.Queue(lock.QueueDeps{
		Queue: "q", Next: nowhere{}, Fields: func() []string { return nil }, Settings: func() settings.Queue { return settings.Queue{} },
	})
	j := newJob("q", "a", "x")
	b.ReportAllocs()
	for b.Loop() {
		q.Offer(j)
		l.Ended(j)
	}
}
