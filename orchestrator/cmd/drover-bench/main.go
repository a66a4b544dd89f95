// Drover-bench measures how fast tasks are drained, as ratios to in-process asynq, side by side in one run.
//
//	drover-bench [-tasks N] [-rounds N]
//
// It starts a redis-server of its own in a temporary directory, enqueues no-op tasks with a payload of 100 bytes, and
// drains them in turn through
//
//	plain   one asynq.Server of concurrency 16 in this process, by TCP: how its users run it
//	tuned   the best set-up in this process: four such servers on one queue, by Unix socket
//	drover  a manager with four worker processes of 16 slots, by Unix socket, with terminal records and events
//	bare    the same without records
//
// The medians of the rounds and their ratios are printed. The machine's own speed cancels out; a noisy one shows as a
// wide range.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		serveNoop()
		return
	}
	tasks := flag.Int("tasks", 20000, "tasks in each round")
	rounds := flag.Int("rounds", 5, "rounds")
	only := flag.String("only", "", "measure only this set-up")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *tasks, *rounds, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "drover-bench:", err)
		os.Exit(1)
	}
}

// workerArgument makes this program a worker: the benchmark is its own plugin.
const workerArgument = "worker"

func serveNoop() {
	type empty struct{}
	sdk.Serve(sdk.Worker{Name: kind, Version: "1.0.0", Description: "does nothing", Slots: slots, Schema: `{"type":"object"}`},
		func(context.Context, struct {
			Data string `json:"data"`
		}) (empty, error) {
			return empty{}, nil
		})
}

// setup is one way to drain tasks.
type setup struct {
	name  string
	drain func(ctx context.Context, b *bench, tasks int) (time.Duration, error)
	rates []float64 // tasks per second, one a round
}

func run(ctx context.Context, out io.Writer, tasks, rounds int, only string) error {
	b, err := newBench()
	if err != nil {
		return err
	}
	defer b.close()
	setups := []*setup{
		{name: "plain", drain: drainPlain}, {name: "tuned", drain: drainTuned},
		{name: "drover", drain: drainDrover}, {name: "bare", drain: drainBare},
	}
	if only != "" {
		setups = slices.DeleteFunc(setups, func(s *setup) bool { return s.name != only })
	}
	for round := range rounds {
		for _, s := range setups {
			took, err := s.drain(ctx, b, tasks)
			if err != nil {
				return fmt.Errorf("round %d of %s: %w", round+1, s.name, err)
			}
			s.rates = append(s.rates, float64(tasks)/took.Seconds())
		}
	}
	report(out, setups, tasks)
	return nil
}

// report prints the medians and their ratios.
func report(out io.Writer, setups []*setup, tasks int) {
	medians := map[string]float64{}
	_, _ = fmt.Fprintf(out, "%d no-op tasks of 100 bytes, %d rounds\n%-8s %10s %22s\n", tasks, len(setups[0].rates), "", "tasks/s", "range")
	for _, s := range setups {
		slices.Sort(s.rates)
		medians[s.name] = s.rates[len(s.rates)/2]
		_, _ = fmt.Fprintf(out, "%-8s %10.0f %10.0f - %9.0f\n", s.name, medians[s.name], s.rates[0], s.rates[len(s.rates)-1])
	}
	for _, name := range []string{"drover", "bare"} {
		if medians[name] > 0 && medians["plain"] > 0 {
			_, _ = fmt.Fprintf(out, "%-6s / plain in-process asynq: %.2f    / tuned in-process asynq: %.2f\n", name, medians[name]/medians["plain"], medians[name]/medians["tuned"])
		}
	}
}
