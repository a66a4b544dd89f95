package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/identity"
	"github.com/drover-jobs/drover/plugins/internal/sanitise"
)

// scrubVersion is the migration after which no HTML in the store is as its publisher wrote it. A sanitiser that becomes stricter
// is one more migration with the same function.
const scrubVersion = 3

// scrubBatch is how many entries are read at once.
const scrubBatch = 200

// scrub sanitises the entries that were stored before readers did it. Their hashes and keys follow, so that the next pull finds
// them again and takes none for edited.
func scrub(ctx context.Context, tx *sql.Tx) error {
	for last := int64(0); ; {
		batch, err := dirty(ctx, tx, last)
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			return nil
		}
		for i := range batch {
			if err := clean(ctx, tx, &batch[i]); err != nil {
				return fmt.Errorf("entry %d: %w", batch[i].ID, err)
			}
		}
		last = batch[len(batch)-1].ID
	}
}

// dirtyEntry is a stored entry and the site that its addresses may be relative to.
type dirtyEntry struct {
	feed.Stored
	site string
}

func dirty(ctx context.Context, tx *sql.Tx, after int64) ([]dirtyEntry, error) {
	rows, err := tx.QueryContext(ctx, `SELECT e.id, e.feed_id, e.guid, e.url, e.title, e.author, e.summary, e.content, e.published, e.categories, e.enclosures,
			CASE f.site_url WHEN '' THEN f.url ELSE f.site_url END
		FROM entries e JOIN feeds f ON f.id = e.feed_id WHERE e.id > ? ORDER BY e.id LIMIT ?`, after, scrubBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []dirtyEntry
	for rows.Next() {
		var (
			e                      dirtyEntry
			published              int64
			categories, enclosures string
		)
		if err := rows.Scan(&e.ID, &e.FeedID, &e.GUID, &e.URL, &e.Title, &e.Author, &e.Summary, &e.Content, &published, &categories, &enclosures, &e.site); err != nil {
			return nil, err
		}
		e.Published = timeOf(published)
		if err := json.Unmarshal([]byte(categories), &e.Categories); err != nil {
			return nil, fmt.Errorf("the categories of entry %d: %w", e.ID, err)
		}
		if err := json.Unmarshal([]byte(enclosures), &e.Enclosures); err != nil {
			return nil, fmt.Errorf("the enclosures of entry %d: %w", e.ID, err)
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

func clean(ctx context.Context, tx *sql.Tx, e *dirtyEntry) error {
	base, err := url.Parse(e.URL)
	if err != nil || base.Host == "" {
		if base, err = url.Parse(e.site); err != nil {
			base = nil
		}
	}
	summary, content := sanitise.HTML(e.Summary, base), sanitise.HTML(e.Content, base)
	address := ""
	if e.URL != "" {
		address = sanitise.Address(e.URL, nil, sanitise.EntrySchemes()...)
	}
	if summary == e.Summary && content == e.Content && address == e.URL {
		return nil
	}
	e.Summary, e.Content, e.URL = summary, content, address
	hash := e.ContentHash()
	if _, err := tx.ExecContext(ctx, "UPDATE entries SET url = ?, summary = ?, content = ?, content_hash = ? WHERE id = ?",
		e.URL, e.Summary, e.Content, hash[:], e.ID); err != nil {
		return err
	}
	w := entryWriter{tx: tx, feedID: e.FeedID}
	keys := identity.KeysOf(&e.Entry)
	return w.changeKeys(ctx, e.ID, keys.All(), nil)
}
