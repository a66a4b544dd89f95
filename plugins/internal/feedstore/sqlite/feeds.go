package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// querier is what a database and a transaction have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

const feedColumns = `id, url, state, type, title, description, site_url, icon_url, language, etag, last_modified, body_hash,
	created_at, checked_at, read_at, full_at, next_fetch, failures, penalty_until, error_kind, error_text, moved_to, moved_since,
	multi_author, full_name`

// Find returns a feed; see feedstore.Store.
func (s *Store) Find(ctx context.Context, ref feed.Ref) (feed.Feed, error) {
	f, err := find(ctx, s.db, ref)
	if err != nil && !errors.Is(err, feed.ErrNotFound) {
		return f, fmt.Errorf("looking for the feed in %s: %w", s.path, err)
	}
	return f, err
}

func find(ctx context.Context, q querier, ref feed.Ref) (feed.Feed, error) {
	var row *sql.Row
	if ref.ID != 0 {
		row = q.QueryRowContext(ctx, "SELECT "+feedColumns+" FROM feeds WHERE id = ?", ref.ID)
	} else {
		row = q.QueryRowContext(ctx, "SELECT "+feedColumns+" FROM feeds WHERE id = (SELECT feed_id FROM feed_urls WHERE url = ?)", ref.URL)
	}
	var (
		f    feed.Feed
		hash []byte
		at   [7]int64
	)
	err := row.Scan(&f.ID, &f.URL, &f.State, &f.Type, &f.Title, &f.Description, &f.SiteURL, &f.IconURL, &f.Language, &f.ETag, &f.LastModified, &hash,
		&at[0], &at[1], &at[2], &at[3], &at[4], &f.Failures, &at[5], &f.ErrorKind, &f.ErrorText, &f.MovedTo, &at[6],
		&f.MultiAuthor, &f.FullName)
	if errors.Is(err, sql.ErrNoRows) {
		return f, feed.ErrNotFound
	}
	if err != nil {
		return f, err
	}
	copy(f.BodyHash[:], hash)
	for i, field := range []*time.Time{&f.CreatedAt, &f.CheckedAt, &f.ReadAt, &f.FullAt, &f.NextFetch, &f.PenaltyUntil, &f.MovedSince} {
		*field = timeOf(at[i])
	}
	return f, nil
}

// create adds a feed that is not known.
func create(ctx context.Context, tx *sql.Tx, address string, now time.Time) (feed.Feed, error) {
	result, err := tx.ExecContext(ctx, "INSERT INTO feeds (url, state, created_at) VALUES (?, ?, ?)", address, feed.Active, millis(now))
	if err != nil {
		return feed.Feed{}, err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return feed.Feed{}, err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO feed_urls (url, feed_id) VALUES (?, ?)", address, id); err != nil {
		return feed.Feed{}, err
	}
	return find(ctx, tx, feed.Ref{ID: id})
}

// move gives a feed its new address and keeps the old one as another name. It returns the feed that has the address already,
// or 0.
func move(ctx context.Context, tx *sql.Tx, f *feed.Feed, address string) (other int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT feed_id FROM feed_urls WHERE url = ?", address).Scan(&other)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = tx.ExecContext(ctx, "INSERT INTO feed_urls (url, feed_id) VALUES (?, ?)", address, f.ID)
	case err == nil && other != f.ID:
		return other, nil
	}
	if err != nil {
		return 0, err
	}
	f.URL, f.MovedTo, f.MovedSince = address, "", time.Time{}
	return 0, nil
}

func update(ctx context.Context, tx *sql.Tx, f *feed.Feed) error {
	_, err := tx.ExecContext(ctx, `UPDATE feeds SET url = ?, state = ?, type = ?, title = ?, description = ?, site_url = ?, icon_url = ?, language = ?,
		etag = ?, last_modified = ?, body_hash = ?, checked_at = ?, read_at = ?, full_at = ?, next_fetch = ?, failures = ?, penalty_until = ?,
		error_kind = ?, error_text = ?, moved_to = ?, moved_since = ? WHERE id = ?`,
		f.URL, f.State, f.Type, f.Title, f.Description, f.SiteURL, f.IconURL, f.Language,
		f.ETag, f.LastModified, f.BodyHash[:], millis(f.CheckedAt), millis(f.ReadAt), millis(f.FullAt), millis(f.NextFetch), f.Failures, millis(f.PenaltyUntil),
		f.ErrorKind, f.ErrorText, f.MovedTo, millis(f.MovedSince), f.ID)
	return err
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
