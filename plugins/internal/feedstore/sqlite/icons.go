package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// Icon returns the icon of a feed; see feedstore.Store.
func (s *Store) Icon(ctx context.Context, feedID int64) (feed.Icon, error) {
	var (
		icon           feed.Icon
		found, checked int64
	)
	err := s.db.QueryRowContext(ctx, "SELECT url, type, data, width, height, rank, found_at, checked_at FROM icons WHERE feed_id = ?", feedID).Scan(
		&icon.URL, &icon.Type, &icon.Data, &icon.Width, &icon.Height, &icon.Rank, &found, &checked)
	if errors.Is(err, sql.ErrNoRows) {
		return feed.Icon{}, feed.ErrNotFound
	}
	if err != nil {
		return feed.Icon{}, fmt.Errorf("reading the icon of feed %d from %s: %w", feedID, s.path, err)
	}
	icon.FoundAt, icon.CheckedAt = timeOf(found), timeOf(checked)
	return icon, nil
}

// SaveIcon keeps the icon of a feed; see feedstore.Store.
func (s *Store) SaveIcon(ctx context.Context, feedID int64, icon feed.Icon) error {
	if icon.Data == nil {
		icon.Data = []byte{}
	}
	_, err := s.db.ExecContext(ctx, `INSERT INTO icons (feed_id, url, type, data, width, height, rank, found_at, checked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (feed_id) DO UPDATE SET url = excluded.url, type = excluded.type, data = excluded.data, width = excluded.width, height = excluded.height,
			rank = excluded.rank, found_at = excluded.found_at, checked_at = excluded.checked_at`,
		feedID, icon.URL, icon.Type, icon.Data, icon.Width, icon.Height, icon.Rank, millis(icon.FoundAt), millis(icon.CheckedAt))
	if err != nil {
		return fmt.Errorf("writing the icon of feed %d to %s: %w", feedID, s.path, err)
	}
	return nil
}

// CountOnly sets whose entries of a feed count; see feedstore.Store.
func (s *Store) CountOnly(ctx context.Context, feedID int64, fullName string) error {
	result, err := s.db.ExecContext(ctx, "UPDATE feeds SET multi_author = ?, full_name = ? WHERE id = ?", fullName != "", fullName, feedID)
	if err != nil {
		return fmt.Errorf("marking feed %d in %s: %w", feedID, s.path, err)
	}
	if n, err := result.RowsAffected(); err == nil && n == 0 {
		return feed.ErrNotFound
	}
	return nil
}
