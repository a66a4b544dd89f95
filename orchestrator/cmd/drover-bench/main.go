// Drover-bench measures how fast Drover is, as ratios to asynq, side by side in one run.
//
//	drover-bench [-tasks N] [-rounds N] [-only NAME] [-parts drain,latency,submit,depth,others] [-queued N]
//
// It starts a redis-server of its own in a temporary directory. Drain: it enqueues no-op tasks with a payload of 100 bytes, and
// drains them in turn through
//
//	plain   one asynq.Server of concurrency 16 in this process, by TCP: how its users run it
//	tuned   the best set-up in this process: four such servers on one queue, by Unix socket
//	drover  a manager with four worker processes of 16 slots, by Unix socket, with terminal records and events
//	bare    the same without records
//
// Latency: one task at a time through an idle system, and what ten idle queues cost. Submit: tasks submitted a second. Depth:
// what a task costs with a million behind it. Others: what people use for workers in processes of other languages, where it is
// installed.
//
// The medians of the rounds and their ratios are printed, with what is wanted. The machine's own speed cancels out; a noisy one
// shows as a wide range.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		serveNoop()
		return
	}
	tasks := flag.Int("tasks", 20000, "tasks in each round")
	rounds := flag.Int("rounds", 3, "rounds of draining")
	only := flag.String("only", "", "measure only this set-up")
	parts := flag.String("parts", "drain,latency,submit,depth,others", "what to measure")
	queued := flag.Int("queued", deep, "tasks in the deep queue")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *tasks, *rounds, *only, strings.Split(*parts, ","), *queued)
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

func run(ctx context.Context, out io.Writer, tasks, rounds int, only string, parts []string, queued int) error {
	b, err := newBench()
	if err != nil {
		return err
	}
	defer b.close()
	all := map[string]func() error{
		"drain":   func() error { return measureDrain(ctx, out, b, tasks, rounds, only) },
		"latency": func() error { return measureLatency(ctx, out, b) },
		"submit":  func() error { return measureSubmit(ctx, out, b) },
		"depth":   func() error { return measureDepth(ctx, out, b, queued) },
		"others":  func() error { return measureOthers(ctx, out, b) },
	}
	for _, part := range parts {
		measure := all[part]
		if measure == nil {
			return fmt.Errorf("no part %q: there are drain, latency, submit, depth and others", part)
		}
		began, load := time.Now(), loadOfMachine()
		if err := measure(); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		_, _ = fmt.Fprintf(out, "(%s; the load of the machine was %s at its beginning and %s at its end, the benchmark's own included)\n", time.Since(began).Round(time.Second), load, loadOfMachine())
	}
	return nil
}

func measureDrain(ctx context.Context, out io.Writer, b *bench, tasks, rounds int, only string) error {
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
