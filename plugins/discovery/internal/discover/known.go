package discover

import (
	"context"
	"errors"
	"net/url"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/plugins/sdk"

	"github.com/drover-jobs/drover/plugins/discovery/internal/rank"
)

// knownFeeds is what a search needs of a feed store.
type knownFeeds interface {
	Find(ctx context.Context, ref feed.Ref) (feed.Feed, error)
	Entries(ctx context.Context, feedID int64, limit int) ([]feed.Stored, error)
}

// countedEntries is how many entries of a known feed are counted; a store knows more than the feed shows.
const countedEntries = 50

// known answers for a feed that the store has and that was well when it was last pulled.
func (f *finder) known(ctx context.Context, starts []*url.URL) (*Result, bool) {
	if f.store == nil {
		return nil, false
	}
	for _, u := range starts {
		known, err := f.store.Find(ctx, feed.Ref{URL: fetch.Canonical(u)})
		switch {
		case errors.Is(err, feed.ErrNotFound):
			continue
		case err != nil:
			sdk.Logger(ctx).WarnContext(ctx, "the feed store does not answer; looking at the site", "error", err)
			return nil, false
		case known.State != feed.Active || known.Failures > 0 || known.First():
			continue // not what a person should be told without looking
		}
		entries, err := f.store.Entries(ctx, known.ID, countedEntries)
		if err != nil {
			return nil, false
		}
		return knownResult(&known, entries)
	}
	return nil, false
}

func knownResult(known *feed.Feed, entries []feed.Stored) (*Result, bool) {
	u, err := url.Parse(known.URL)
	if err != nil {
		return nil, false
	}
	found := rank.Feed{
		URL: u, Title: known.Title, Description: known.Description, Type: known.Type, Icon: known.IconURL,
		Facts: rank.Facts{Origin: rank.Given, Entries: len(entries)},
	}
	if len(entries) > 0 {
		found.LastPost = entries[0].Date
	}
	return &Result{
		Feeds: []Feed{feedOf(&found, "")}, Site: siteOf(u, known.SiteURL), Title: clip(plain(known.Title), maxTitle),
		Tried: []Tried{}, Notes: []string{}, From: fromStore, FoundAt: known.ReadAt.UTC(),
	}, true
}
