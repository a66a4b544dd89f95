package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
// them again and takes none for edited. It takes about a millisecond an entry, which can be longer than a process may take to
// start: so each batch is a transaction of its own, the number of the last entry is kept in the file's user_version, and who comes
// next goes on from there. Nobody reads the store meanwhile, for opening it waits for the migration lock.
func scrub(ctx context.Context, db *sql.DB) error {
	for more := true; more; {
		var err error
		if more, err = scrubOne(ctx, db); err != nil {
			return err
		}
	}
	return nil
}

// scrubOne does one batch, and says whether there may be more.
func scrubOne(ctx context.Context, db *sql.DB) (more bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	var last int64
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&last); err != nil {
		return false, err
	}
	batch, err := dirty(ctx, tx, last)
	if err != nil {
		return false, err
	}
	last = 0 // done, unless there is something to do
	for i := range batch {
		if err := clean(ctx, tx, &batch[i]); err != nil {
			return false, fmt.Errorf("entry %d: %w", batch[i].ID, err)
		}
		last = batch[i].ID
	}
	if last > math.MaxInt32 {
		return false, fmt.Errorf("entry %d: its number is beyond what user_version holds", last)
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", last)); err != nil {
		return false, err
	}
	return len(batch) > 0, tx.Commit()
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
