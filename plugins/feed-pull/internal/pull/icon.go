package pull

import (
	"context"
	"errors"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/icon"
	"github.com/drover-jobs/drover/plugins/sdk"
)

const (
	iconTimeout  = 5 * time.Second  // for one address
	iconPatience = 15 * time.Second // for all of them
)

// lookForIcon looks for the icon of a feed when it is time to. The entries are stored already, so that nothing that goes wrong
// here is a failure: it is tried again next week.
func (p *puller) lookForIcon(ctx context.Context, f *feed.Feed) {
	now := time.Now()
	known, err := p.store.Icon(ctx, f.ID)
	if err != nil && !errors.Is(err, feed.ErrNotFound) || !known.Due(now) {
		return
	}
	timed, cancel := context.WithTimeout(ctx, iconPatience)
	defer cancel()
	found := icon.Find(timed, p.iconClient, f)
	if ctx.Err() != nil {
		return // the task was ended, not the search
	}
	if err := p.store.SaveIcon(ctx, f.ID, known.After(found, now)); err != nil {
		sdk.Logger(ctx).WarnContext(ctx, "the icon was not stored", "feed_id", f.ID, "error", err)
	}
}
