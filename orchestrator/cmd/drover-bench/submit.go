package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
)

// What is wanted of submits, as ratios.
const (
	wantBatch     = 3.0 // a batch to one by one
	wantAPI       = 0.5 // through the API to straight to Redis
	submitSingles = 4000
	submitBatched = 20_000
	submitters    = 8
	submitAlone   = 2000 // by one caller
	submitRounds  = 3
)

// measureSubmit measures how many tasks a second are submitted, one by one and in a batch, by both transports in turn.
func measureSubmit(ctx context.Context, out io.Writer, b *bench) error {
	if err := b.admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	rates := map[string][]float64{}
	err := b.withManager(ctx, "noop: {plugin: noop, max_workers: 1}", func(ctx context.Context) error {
		if err := b.pause(ctx); err != nil {
			return err
		}
		straight, err := direct.Open("unix://"+b.socket(), slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer func() { _ = straight.Close() }()
		api, err := client.Dial("unix:" + b.apiSocket())
		if err != nil {
			return err
		}
		defer func() { _ = api.Close() }()
		over := []struct {
			name string
			c    client.Client
		}{{"direct", straight}, {"API", api}}
		for round := range submitRounds {
			for _, o := range over {
				alone, err := submitOneByOne(ctx, o.c, fmt.Sprint(o.name, round, " alone"), 1, submitAlone)
				if err != nil {
					return err
				}
				single, err := submitOneByOne(ctx, o.c, fmt.Sprint(o.name, round), submitters, submitSingles)
				if err != nil {
					return err
				}
				batch, err := submitAtOnce(ctx, o.c, fmt.Sprint(o.name, round))
				if err != nil {
					return err
				}
				rates[o.name+" alone"] = append(rates[o.name+" alone"], alone)
				rates[o.name+" single"] = append(rates[o.name+" single"], single)
				rates[o.name+" batch"] = append(rates[o.name+" batch"], batch)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	median := func(name string) float64 {
		slices.Sort(rates[name])
		return rates[name][len(rates[name])/2]
	}
	_, _ = fmt.Fprintf(out, "\nSubmits of 100 bytes a second, %d rounds (wanted: batch / one caller %.0f, API / direct %.1f)\n%-8s %12s %12s %12s %20s %20s\n",
		submitRounds, wantBatch, wantAPI, "", "one caller", fmt.Sprint(submitters, " callers"), "batch", "batch / one caller", fmt.Sprint("batch / ", submitters, " callers"))
	for _, name := range []string{"direct", "API"} {
		alone, single, batch := median(name+" alone"), median(name+" single"), median(name+" batch")
		_, _ = fmt.Fprintf(out, "%-8s %12.0f %12.0f %12.0f %20.1f %20.1f\n", name, alone, single, batch, batch/alone, batch/single)
	}
	ratio := func(how string) float64 { return median("API "+how) / median("direct "+how) }
	_, _ = fmt.Fprintf(out, "API / direct: one caller %.2f, %d callers %.2f, batch %.2f\n", ratio("alone"), submitters, ratio("single"), ratio("batch"))
	return nil
}

// submitOneByOne submits so many tasks from so many goroutines, and returns tasks per second.
func submitOneByOne(ctx context.Context, c client.Client, name string, callers, tasks int) (float64, error) {
	var submitting sync.WaitGroup
	errs := make(chan error, callers)
	began := time.Now()
	for s := range callers {
		submitting.Go(func() {
			for i := s; i < tasks; i += callers {
				if _, err := c.Submit(ctx, kind, payload(name, i)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	submitting.Wait()
	took := time.Since(began)
	close(errs)
	return float64(tasks) / took.Seconds(), <-errs
}

func submitAtOnce(ctx context.Context, c client.Client, name string) (float64, error) {
	work := make([]client.Work, submitBatched)
	for i := range work {
		work[i] = client.Work{Queue: kind, Payload: payload(name, -i)}
	}
	began := time.Now()
	_, err := c.SubmitBatch(ctx, work)
	return submitBatched / time.Since(began).Seconds(), err
}

// payload is one of its own of 100 bytes.
func payload(name string, i int) map[string]string {
	return map[string]string{"data": fmt.Sprintf("%-89s", fmt.Sprint(name, " ", i))}
}
