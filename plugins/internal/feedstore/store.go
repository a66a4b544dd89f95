// Package feedstore is where feeds, their entries, penalties and status log are kept.
//
// It owns the interface that every store fulfils, the choice of the store by its address, and the suite (storetest) that each
// implementation has to pass. The SQL is in the implementations; the rules that they share (identity, penalties, moves) are in
// the packages identity and feed. Callers are the feed workers, several processes at once. A store starts no goroutine that
// outlives Close.
package feedstore

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedstore/sqlite"
)

// Store keeps feeds. Every method is safe for concurrent use, also by several processes, and does all or nothing. An error
// other than feed.ErrNotFound says that the store did not do its work and may do it later.
type Store interface {
	// Find returns the feed with that number or that address, present or earlier. feed.ErrNotFound when there is none.
	Find(ctx context.Context, ref feed.Ref) (feed.Feed, error)
	// Save writes what a pull brought home: the feed, its entries, its penalty and one row of the status log. A feed that is
	// named by its address is created when it is not known. Saving the same again adds no entry.
	Save(ctx context.Context, pull *feed.Pull, policy feed.Policy) (feed.Saved, error)
	// Entries returns the newest entries of a feed by effective date, at most limit.
	Entries(ctx context.Context, feedID int64, limit int) ([]feed.Stored, error)
	// Log returns the latest rows of a feed's status log, newest first, at most limit.
	Log(ctx context.Context, feedID int64, limit int) ([]feed.LogRow, error)
	// Icon returns the icon of a feed. feed.ErrNotFound when none was ever looked for.
	Icon(ctx context.Context, feedID int64) (feed.Icon, error)
	// SaveIcon keeps an icon in the place of the one before.
	SaveIcon(ctx context.Context, feedID int64, icon feed.Icon) error
	// CountOnly marks a feed as one of many authors, of whose entries only those by fullName count; "" takes the mark away.
	CountOnly(ctx context.Context, feedID int64, fullName string) error
	// Close gives everything back.
	Close() error
}

var _ Store = (*sqlite.Store)(nil)

// DefaultAddress is the store that is used when none is named.
const DefaultAddress = "sqlite:var/feeds.db"

// Open opens the store at address, such as "sqlite:var/feeds.db", creates it when it is not there, and brings its tables up to
// date. Several processes may do so at once.
func Open(ctx context.Context, address string, log *slog.Logger) (Store, error) {
	scheme, rest, ok := strings.Cut(address, ":")
	switch {
	case !ok || rest == "":
		return nil, fmt.Errorf("the store %q has no scheme: write it like %q", address, DefaultAddress)
	case scheme == "sqlite":
		store, err := sqlite.Open(ctx, rest, log)
		if err != nil {
			return nil, err
		}
		return store, nil
	}
	return nil, fmt.Errorf("the store %q has the unknown scheme %q: use sqlite, as in %q", address, scheme, DefaultAddress)
}
