package worker_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// What a look at the memory of eight workers costs, which happens five times a second; and the search for what a worker left.
func BenchmarkLooks(b *testing.B) {
	r := newBenchRig(b)
	program := testenv.BuildBinaries(b, "./plugins/sdk/sdktest/misbehave")
	const workers = 8
	processes := make([]*worker.Process, 0, workers)
	for range workers {
		p, err := r.Start(b.Context(), spec(program...), newRecorder())
		if err != nil {
			b.Fatal(err)
		}
		processes = append(processes, p)
	}
	b.Run("memory of eight workers", func(b *testing.B) {
		for b.Loop() {
			for _, p := range processes {
				if p.RSS() == 0 {
					b.Fatal("no memory")
				}
			}
		}
	})
	b.Run("what one left", func(b *testing.B) {
		for b.Loop() {
			reaper.SweepWorker("/nowhere", nil)
		}
	})
	for _, p := range processes {
		p.Kill("bench")
		<-p.Done()
	}
}

// newBenchRig starts a launcher that ends with the benchmark.
func newBenchRig(b *testing.B) *worker.Launcher {
	b.Helper()
	launcher, err := worker.NewLauncher(testenv.ShortDir(b), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- launcher.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return launcher
}
