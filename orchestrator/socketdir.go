package orchestrator

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// socketDirPrefix begins the names of the directories of worker sockets, in the directory for temporary files. Not in the state
// directory: the path of a Unix socket is short.
const socketDirPrefix = "drover-sockets-"

// socketDir is this manager's private directory of worker sockets. It is locked while the manager lives, so that the next
// one can tell and remove what one left that was killed.
type socketDir struct {
	path string
	lock *os.File
}

// openSocketDir removes the directories that dead managers of this user left, and makes a new one.
func openSocketDir(log *slog.Logger) (*socketDir, error) {
	sweepSocketDirs(log)
	path, err := os.MkdirTemp("", socketDirPrefix) // mode 0700
	if err != nil {
		return nil, fmt.Errorf("make a directory for worker sockets: %w", err)
	}
	lock, err := lockDir(path, os.O_CREATE)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the directory for worker sockets: %w", err), os.RemoveAll(path))
	}
	return &socketDir{path: path, lock: lock}, nil
}

// close removes the directory.
func (d *socketDir) close() error {
	return errors.Join(os.RemoveAll(d.path), d.lock.Close())
}

// lockDir takes the lock of a directory without waiting. The lock goes with the process that has it.
func lockDir(path string, create int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|create, 0o600) //nolint:gosec // a directory of our own
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweepSocketDirs removes directories whose lock nobody has. One without a lock file is just being made, or of another user.
func sweepSocketDirs(log *slog.Logger) {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), socketDirPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range found {
		lock, err := lockDir(path, 0)
		if err != nil {
			continue
		}
		log.Info("removing the worker sockets of a manager that was killed", "directory", path)
		if err := errors.Join(os.RemoveAll(path), lock.Close()); err != nil {
			log.Warn("worker sockets of a dead manager could not be removed", "directory", path, "error", err)
		}
	}
}
