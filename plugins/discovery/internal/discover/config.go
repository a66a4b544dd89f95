package discover

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feedstore"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/plugins/internal/options"

	"github.com/drover-jobs/drover/plugins/discovery/internal/cache"
)

// Defaults of the options.
const (
	defaultBudget   = 20 * time.Second
	defaultTimeout  = 8 * time.Second
	defaultKeep     = 2 * time.Hour
	defaultMaxBytes = 8 << 20
	// noStore is the word for a worker that looks nothing up.
	noStore = "off"
)

// config is what the options of the plugin come to.
type config struct {
	fetch fetch.Config
	// store is the address of the feed store in which known feeds are looked up, cache that of the cache.
	store, cache string
	// budget bounds a task, keep is how long its answer holds.
	budget, keep time.Duration
}

// parseOptions reads the plugin's options strictly: every mistake is named, with what is allowed.
func parseOptions(raw json.RawMessage) (config, error) {
	c := config{store: feedstore.DefaultAddress, cache: cache.DefaultAddress, budget: defaultBudget, keep: defaultKeep}
	c.fetch.Timeout, c.fetch.MaxBody = defaultTimeout, defaultMaxBytes
	const least = 100 * time.Millisecond
	err := options.Read("discovery", raw, map[string]options.Setter{
		"store":          options.Text(&c.store),
		"cache":          options.Text(&c.cache),
		"allow_networks": options.List(&c.fetch.AllowNetworks),
		"user_agent":     options.Text(&c.fetch.UserAgent),
		"timeout":        options.Duration(&c.fetch.Timeout, least, 10*time.Minute),
		"budget":         options.Duration(&c.budget, least, 10*time.Minute),
		"keep":           options.Duration(&c.keep, time.Second, 30*24*time.Hour),
		"max_bytes":      options.Size(&c.fetch.MaxBody),
	})
	c.fetch.MaxWire = c.fetch.MaxBody
	if err == nil && c.fetch.Timeout > c.budget {
		err = fmt.Errorf("option timeout: %v for one fetch is more than budget, %v for all", c.fetch.Timeout, c.budget)
	}
	return c, err
}
