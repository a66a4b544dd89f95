package discover

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/drover-jobs/drover/plugins/internal/feedstore"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/protocol/fault"

	"github.com/drover-jobs/drover/plugins/discovery/internal/cache"
)

// version is shown to people; it changes with what the worker does.
const version = "0.1.0"

// slots is how many tasks one process runs at once: a task waits for the network most of its time.
const slots = 8

// atOnce bounds the fetches of a process, and so the memory for bodies.
const atOnce = 24

//go:embed payload.json
var payloadSchema string

// Program returns the worker. It opens its cache and its store when it is configured and closes them after its last task.
func Program() *sdk.Program {
	var current atomic.Pointer[finder]
	worker := sdk.Worker{
		Name:        "discovery",
		Version:     version,
		Description: "Finds the feeds behind an address.",
		Slots:       slots,
		Limits:      map[string]string{"task_timeout": "1m"},
		Schema:      payloadSchema,
		Configure: func(ctx context.Context, c sdk.Config) error {
			f, err := configure(ctx, c, sdk.Logger(ctx))
			if err == nil {
				current.Store(f)
			}
			return err
		},
		Close: func() error {
			f := current.Swap(nil)
			if f == nil {
				return nil
			}
			f.client.Close()
			return f.close()
		},
	}
	return sdk.New(worker, func(ctx context.Context, in Payload) (*Result, error) {
		f := current.Load()
		if f == nil {
			return nil, fault.New(fault.Unavailable, "the worker was not configured")
		}
		return f.find(ctx, in)
	})
}

func configure(ctx context.Context, c sdk.Config, log *slog.Logger) (*finder, error) {
	cfg, err := parseOptions(c.Options)
	if err != nil {
		return nil, err
	}
	client, err := fetch.New(cfg.fetch)
	if err != nil {
		return nil, err
	}
	kept, err := cache.Open(cfg.cache)
	if err != nil {
		return nil, err
	}
	f := &finder{client: client, gate: make(chan struct{}, atOnce), cache: kept, keep: cfg.keep, budget: cfg.budget, close: kept.Close}
	if cfg.store != noStore {
		store, err := feedstore.Open(ctx, cfg.store, log)
		if err != nil {
			return nil, errors.Join(err, kept.Close())
		}
		f.store, f.close = store, func() error { return errors.Join(kept.Close(), store.Close()) }
	}
	return f, nil
}
