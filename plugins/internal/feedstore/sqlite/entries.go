package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/identity"
)

// entryWriter writes the entries of one document inside a transaction.
type entryWriter struct {
	tx     *sql.Tx
	feedID int64
	now    time.Time
	// insertOnly leaves known entries as they are: the document is older than what is stored.
	insertOnly bool

	known                             map[int64]*knownEntry
	fresh, edited, repeated, remapped int
}

// knownEntry is an entry of the store that may be one of the document's.
type knownEntry struct {
	identity.Known
	identity  identity.Key
	url       string
	firstSeen time.Time
}

func (w *entryWriter) write(ctx context.Context, entries []feed.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	known, err := w.load(ctx, entries)
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	plan := identity.Match(entries, known)
	w.repeated, w.remapped = plan.Repeated, plan.Remapped
	// Documents begin with the newest; the other way round the numbers grow with time.
	for i := len(plan.Decisions) - 1; i >= 0; i-- {
		d := &plan.Decisions[i]
		e := &entries[d.Entry]
		switch {
		case d.Known == 0:
			err = w.insert(ctx, e, d)
		case !w.insertOnly:
			err = w.update(ctx, e, d)
		}
		if err != nil {
			return fmt.Errorf("writing %q: %w", e.Title, err)
		}
	}
	return nil
}

func (w *entryWriter) warnings() []string {
	var out []string
	if w.repeated > 0 {
		out = append(out, fmt.Sprintf("%d entries are in the document twice", w.repeated))
	}
	if w.remapped > 0 {
		out = append(out, fmt.Sprintf("%d entries have new addresses and were recognised by title and date", w.remapped))
	}
	return out
}

// load returns the entries of the feed that share a key with any of the document.
func (w *entryWriter) load(ctx context.Context, entries []feed.Entry) ([]identity.Known, error) {
	var keys []identity.Key
	for i := range entries {
		k := identity.KeysOf(&entries[i])
		keys = append(keys, k.All()...)
	}
	wanted, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	rows, err := w.tx.QueryContext(ctx, `SELECT e.id, e.identity, e.guid, e.url, e.title, e.published, e.content_hash, e.first_seen, e.enclosures <> '[]',
			(SELECT json_group_array(key) FROM entry_keys k WHERE k.entry_id = e.id)
		FROM entries e WHERE e.id IN (
			SELECT entry_id FROM entry_keys WHERE feed_id = ?1 AND key IN (SELECT value FROM json_each(?2)))
		ORDER BY e.id`, w.feedID, string(wanted))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	w.known = make(map[int64]*knownEntry)
	var known []identity.Known
	for rows.Next() {
		var (
			k         knownEntry
			published int64
			seen      int64
			hash      []byte
			files     bool
			list      string
		)
		if err := rows.Scan(&k.ID, &k.identity, &k.GUID, &k.url, &k.Title, &published, &hash, &seen, &files, &list); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(list), &k.Keys); err != nil {
			return nil, fmt.Errorf("the keys of entry %d: %w", k.ID, err)
		}
		copy(k.ContentHash[:], hash)
		k.Date, k.firstSeen, k.HasURL = timeOf(published), timeOf(seen), k.url != "" || files
		w.known[k.ID] = &k
		known = append(known, k.Known)
	}
	return known, rows.Err()
}

func (w *entryWriter) insert(ctx context.Context, e *feed.Entry, d *identity.Decision) error {
	lists, err := listsOf(e)
	if err != nil {
		return err
	}
	hash := e.ContentHash()
	result, err := w.tx.ExecContext(ctx, `INSERT INTO entries (feed_id, identity, guid, url, title, author, summary, content, published, updated, date,
			first_seen, content_hash, categories, enclosures, extensions) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (feed_id, identity) DO NOTHING`,
		w.feedID, d.Identity, e.GUID, e.URL, e.Title, e.Author, e.Summary, e.Content, millis(e.Published), millis(e.Updated),
		millis(feed.EffectiveDate(e.Published, w.now)), millis(w.now), hash[:], lists[0], lists[1], string(e.Extensions))
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return err
	}
	w.fresh++
	return w.changeKeys(ctx, id, d.Keys.All(), nil)
}

// update takes over what has changed. Only a change of the content counts as an edit.
func (w *entryWriter) update(ctx context.Context, e *feed.Entry, d *identity.Decision) error {
	k := w.known[d.Known]
	hash := e.ContentHash()
	if hash != k.ContentHash {
		w.edited++
	} else if e.GUID == k.GUID && e.URL == k.url && millis(e.Published) == millis(k.Date) {
		return nil
	}
	lists, err := listsOf(e)
	if err != nil {
		return err
	}
	date := feed.EffectiveDate(e.Published, k.firstSeen)
	if e.Published.After(k.firstSeen) && !e.Published.After(w.now) && millis(e.Published) != millis(k.Date) {
		date = e.Published // published again, later, and not in the future
	}
	_, err = w.tx.ExecContext(ctx, `UPDATE entries SET guid = ?2, url = ?3, title = ?4, author = ?5, summary = ?6, content = ?7, published = ?8, updated = ?9,
			date = CASE WHEN published = ?8 THEN date ELSE ?10 END,
			edited_at = CASE WHEN content_hash = ?11 THEN edited_at ELSE ?12 END,
			revision = CASE WHEN content_hash = ?11 THEN revision ELSE revision + 1 END,
			content_hash = ?11, categories = ?13, enclosures = ?14, extensions = ?15 WHERE id = ?1`,
		d.Known, e.GUID, e.URL, e.Title, e.Author, e.Summary, e.Content, millis(e.Published), millis(e.Updated),
		millis(date), hash[:], millis(w.now), lists[0], lists[1], string(e.Extensions))
	if err != nil {
		return err
	}
	add, drop := identity.Merge(k.Keys, k.identity, d.Keys)
	return w.changeKeys(ctx, d.Known, add, drop)
}

func (w *entryWriter) changeKeys(ctx context.Context, id int64, add, drop []identity.Key) error {
	for _, c := range []struct {
		keys  []identity.Key
		query string
	}{
		{drop, "DELETE FROM entry_keys WHERE feed_id = ? AND entry_id = ? AND key IN (SELECT value FROM json_each(?))"},
		{add, "INSERT INTO entry_keys (feed_id, entry_id, key) SELECT ?, ?, value FROM json_each(?) WHERE true ON CONFLICT DO NOTHING"},
	} {
		if len(c.keys) == 0 {
			continue
		}
		list, err := json.Marshal(c.keys)
		if err != nil {
			return err
		}
		if _, err := w.tx.ExecContext(ctx, c.query, w.feedID, id, string(list)); err != nil {
			return fmt.Errorf("its keys: %w", err)
		}
	}
	return nil
}

// listsOf encodes categories and enclosures.
func listsOf(e *feed.Entry) (lists [2]string, err error) {
	for i, list := range []any{e.Categories, e.Enclosures} {
		text, err := json.Marshal(list)
		if err != nil {
			return lists, err
		}
		if lists[i] = string(text); lists[i] == "null" {
			lists[i] = "[]"
		}
	}
	return lists, nil
}
