package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// logRows is how many rows of the status log are kept for each feed.
const logRows = 200

// Save writes what a pull brought home in one transaction; see feedstore.Store.
func (s *Store) Save(ctx context.Context, pull *feed.Pull, policy feed.Policy) (feed.Saved, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return feed.Saved{}, fmt.Errorf("writing to the feed store %s: %w", s.path, err)
	}
	saved, err := save(ctx, tx, pull, policy)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
			err = errors.Join(err, undo)
		}
		if errors.Is(err, feed.ErrNotFound) {
			return feed.Saved{}, err
		}
		return feed.Saved{}, fmt.Errorf("writing to the feed store %s: %w", s.path, err)
	}
	return saved, nil
}

func save(ctx context.Context, tx *sql.Tx, pull *feed.Pull, policy feed.Policy) (feed.Saved, error) {
	f, err := find(ctx, tx, pull.Feed)
	if errors.Is(err, feed.ErrNotFound) && pull.Feed.ID == 0 {
		f, err = create(ctx, tx, pull.Feed.URL, pull.At)
	}
	if err != nil {
		return feed.Saved{}, err
	}
	out := feed.Saved{Warnings: slices.Clone(pull.Warnings)}
	first, stale, moved := f.First(), f.Stale(pull), false
	if moveTo := f.Apply(pull, policy); moveTo != "" {
		other, err := move(ctx, tx, &f, moveTo)
		if err != nil {
			return out, fmt.Errorf("moving feed %d: %w", f.ID, err)
		}
		if moved = other == 0; !moved {
			out.Warnings = append(out.Warnings, feed.MoveTaken(moveTo, other))
		}
	}
	if pull.Document != nil {
		w := entryWriter{tx: tx, feedID: f.ID, now: pull.At, insertOnly: stale}
		if err := w.write(ctx, pull.Document.Entries); err != nil {
			return out, fmt.Errorf("the entries of feed %d: %w", f.ID, err)
		}
		out.NewEntries, out.UpdatedEntries = w.fresh, w.edited
		out.Items, out.Lost, out.Repeated = pull.Document.Items, pull.Document.Lost, w.repeated
		out.Warnings = append(out.Warnings, w.warnings()...)
	}
	if !stale {
		if err := update(ctx, tx, &f); err != nil {
			return out, fmt.Errorf("feed %d: %w", f.ID, err)
		}
	}
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM entries WHERE feed_id = ?", f.ID).Scan(&out.Entries); err != nil {
		return out, err
	}
	out.Feed, out.Status = f, feed.StatusOf(pull, first, moved, out.NewEntries, out.UpdatedEntries)
	return out, logPull(ctx, tx, pull, &out)
}

// logPull adds a row to the status log and lets the oldest go.
func logPull(ctx context.Context, tx *sql.Tx, pull *feed.Pull, out *feed.Saved) error {
	message := pull.ErrorText
	if message == "" {
		message = strings.Join(out.Warnings, "; ")
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO status_log (feed_id, at, took_ms, status, http_status, new_entries, updated_entries, error_kind, message)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		out.Feed.ID, millis(pull.At), pull.Took.Milliseconds(), out.Status, pull.HTTPStatus, out.NewEntries, out.UpdatedEntries, pull.ErrorKind, message)
	if err != nil {
		return fmt.Errorf("the status log of feed %d: %w", out.Feed.ID, err)
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM status_log WHERE feed_id = ?1 AND id <= (
		SELECT id FROM status_log WHERE feed_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`, out.Feed.ID, logRows)
	if err != nil {
		return fmt.Errorf("trimming the status log of feed %d: %w", out.Feed.ID, err)
	}
	return nil
}
