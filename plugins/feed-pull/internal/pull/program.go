package pull

import (
	"context"
	_ "embed"
	"log/slog"
	"sync/atomic"

	"github.com/drover-jobs/drover/plugins/internal/feedstore"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/plugins/internal/icon"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/protocol/fault"
)

// version is shown to people; it changes with what the worker does.
const version = "0.1.0"

// slots is how many feeds one process pulls at once: a pull waits for the network most of its time.
const slots = 8

//go:embed payload.json
var payloadSchema string

// Program returns the worker. It opens its store when it is configured and closes it after its last task.
func Program() *sdk.Program {
	var current atomic.Pointer[puller]
	worker := sdk.Worker{
		Name:        "feed-pull",
		Version:     version,
		Description: "Pulls one feed: fetches, reads and stores it.",
		Slots:       slots,
		LockKey:     []string{"url", "feed_id"},
		Limits:      map[string]string{"task_timeout": "2m"},
		Schema:      payloadSchema,
		Configure: func(ctx context.Context, c sdk.Config) error {
			p, err := configure(ctx, c, sdk.Logger(ctx))
			if err == nil {
				current.Store(p)
			}
			return err
		},
		Close: func() error {
			p := current.Swap(nil)
			if p == nil {
				return nil
			}
			p.client.Close()
			p.iconClient.Close()
			return p.closeStore()
		},
	}
	return sdk.New(worker, func(ctx context.Context, in Payload) (*Result, error) {
		p := current.Load()
		if p == nil {
			return nil, fault.New(fault.Unavailable, "the worker has no store: it was not configured")
		}
		return p.pull(ctx, in)
	})
}

func configure(ctx context.Context, c sdk.Config, log *slog.Logger) (*puller, error) {
	o, err := parseOptions(c.Options)
	if err != nil {
		return nil, err
	}
	client, err := fetch.New(o.fetch)
	if err != nil {
		return nil, err
	}
	small := o.fetch
	small.Timeout, small.MaxBody, small.MaxWire = iconTimeout, icon.MaxBytes, icon.MaxBytes
	iconClient, err := fetch.New(small)
	if err != nil {
		return nil, err
	}
	store, err := feedstore.Open(ctx, o.store, log)
	if err != nil {
		return nil, err
	}
	return &puller{client: client, store: store, closeStore: store.Close, policy: o.policy, iconClient: iconClient, icons: o.icons}, nil
}
