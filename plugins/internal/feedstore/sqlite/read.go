package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// Entries returns the newest entries of a feed; see feedstore.Store.
func (s *Store) Entries(ctx context.Context, feedID int64, limit int) ([]feed.Stored, error) {
	out, err := s.entries(ctx, feedID, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the entries of feed %d from %s: %w", feedID, s.path, err)
	}
	return out, nil
}

func (s *Store) entries(ctx context.Context, feedID int64, limit int) ([]feed.Stored, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, feed_id, guid, url, title, author, summary, content, published, updated, date, first_seen, edited_at, revision,
		categories, enclosures, extensions FROM entries WHERE feed_id = ? ORDER BY date DESC, id DESC LIMIT ?`, feedID, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []feed.Stored
	for rows.Next() {
		var (
			e                              feed.Stored
			at                             [5]int64
			categories, enclosures, extras string
		)
		if err := rows.Scan(&e.ID, &e.FeedID, &e.GUID, &e.URL, &e.Title, &e.Author, &e.Summary, &e.Content, &at[0], &at[1], &at[2], &at[3], &at[4],
			&e.Revision, &categories, &enclosures, &extras); err != nil {
			return nil, err
		}
		for i, field := range []*time.Time{&e.Published, &e.Updated, &e.Date, &e.FirstSeen, &e.EditedAt} {
			*field = timeOf(at[i])
		}
		if err := json.Unmarshal([]byte(categories), &e.Categories); err != nil {
			return nil, fmt.Errorf("the categories of entry %d: %w", e.ID, err)
		}
		if err := json.Unmarshal([]byte(enclosures), &e.Enclosures); err != nil {
			return nil, fmt.Errorf("the enclosures of entry %d: %w", e.ID, err)
		}
		if extras != "" {
			e.Extensions = json.RawMessage(extras)
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// Log returns the latest rows of a feed's status log; see feedstore.Store.
func (s *Store) Log(ctx context.Context, feedID int64, limit int) ([]feed.LogRow, error) {
	out, err := s.log(ctx, feedID, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the status log of feed %d from %s: %w", feedID, s.path, err)
	}
	return out, nil
}

func (s *Store) log(ctx context.Context, feedID int64, limit int) ([]feed.LogRow, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT at, took_ms, status, http_status, new_entries, updated_entries, error_kind, message
		FROM status_log WHERE feed_id = ? ORDER BY id DESC LIMIT ?`, feedID, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []feed.LogRow
	for rows.Next() {
		var (
			r        feed.LogRow
			at, took int64
		)
		if err := rows.Scan(&at, &took, &r.Status, &r.HTTPStatus, &r.NewEntries, &r.UpdatedEntries, &r.ErrorKind, &r.Message); err != nil {
			return nil, err
		}
		r.At, r.Took = timeOf(at), time.Duration(took)*time.Millisecond
		out = append(out, r)
	}
	return out, rows.Err()
}
