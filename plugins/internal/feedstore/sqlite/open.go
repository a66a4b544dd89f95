// Package sqlite keeps feeds in one SQLite file that several processes share.
//
// It owns the file, its tables and every statement. It does not own the rules: which entry is which is decided by the package
// identity, and what a pull means for its feed by the package feed, both called inside the transaction that writes.
//
// Writers take the file's write lock at the beginning of their transaction (BEGIN IMMEDIATE) and wait for it up to
// busyTimeout, so that what they read is what they decide on. Readers never wait (WAL). Migrations are serialised by the
// write lock of a small file of their own beside the database, which ends with the process that holds it.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver
)

const (
	busyTimeout    = 20 * time.Second
	migrateTimeout = 10 * time.Minute // scrub is the long one; it goes on where it was
	connections    = 4
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store is an open database.
type Store struct {
	db   *sql.DB
	path string
}

// Open opens or creates the database at path and brings its tables up to date.
func Open(ctx context.Context, path string, log *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("making the directory of the feed store: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(path, busyTimeout))
	if err != nil {
		return nil, fmt.Errorf("opening the feed store %s: %w", path, err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	s := &Store{db: db, path: path}
	if err := s.migrate(ctx, log); err != nil {
		return nil, fmt.Errorf("preparing the feed store %s: %w", path, errors.Join(err, db.Close()))
	}
	return s, nil
}

// Close waits for what is under way and closes the file.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("closing the feed store %s: %w", s.path, err)
	}
	return nil
}

func dsn(path string, busy time.Duration) string {
	query := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()), "foreign_keys(1)", "synchronous(NORMAL)", "cache_size(-8000)",
		},
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}

// migrate brings the tables up to date, one process at a time.
func (s *Store) migrate(ctx context.Context, log *slog.Logger) (err error) {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	unlock, err := lock(ctx, s.path+".migrate")
	if err != nil {
		return fmt.Errorf("waiting for another process to prepare it: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	// The switch to WAL does not wait for other connections, so it has to happen under the lock too. It stays in the file.
	var mode string
	if err := s.db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return fmt.Errorf("switching to WAL: %w", err)
	}
	if mode != "wal" {
		return fmt.Errorf("its journal mode is %q: put the file where SQLite can use WAL, which is no network file system", mode)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, s.db, files, goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(goose.NewGoMigration(scrubVersion, &goose.GoFunc{RunDB: scrub}, nil)))
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("reading its version: %w", err)
	}
	if current > target {
		return fmt.Errorf("it has version %d, made by a newer program; this one knows %d: update this program", current, target)
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("bringing its tables up to date: %w", err)
	}
	if len(done) > 0 {
		log.InfoContext(ctx, "feed store migrated", "path", s.path, "steps", len(done), "version", target)
	}
	return nil
}

// lock takes the write lock of the database at path, which holds nothing. The system releases it when the process ends.
func lock(ctx context.Context, path string) (unlock func() error, err error) {
	db, err := sql.Open("sqlite", dsn(path, migrateTimeout))
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return func() error {
		err := tx.Rollback()
		if errors.Is(err, sql.ErrTxDone) { // the context ended first
			err = nil
		}
		return errors.Join(err, db.Close())
	}, nil
}
