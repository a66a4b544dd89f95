package repl

import (
	"fmt"
	"os"
	"path/filepath"
)

// historyLines is how many lines are kept.
const historyLines = 2000

// HistoryFile is where a user's lines are kept; empty when the user has no place for such.
func HistoryFile(getenv func(string) string) string {
	dir := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "drover", "history")
}

// prepare makes the file, for its owner only: the editor would let others read it.
func prepare(path string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the user's own file
	if err != nil {
		return err
	}
	if err := file.Chmod(0o600); err != nil {
		return fmt.Errorf("%w: %w", err, file.Close())
	}
	return file.Close()
}
