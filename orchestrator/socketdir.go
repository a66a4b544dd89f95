package orchestrator

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
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

// openSocketDir removes the directories that dead managers of this user left, with the processes of their workers, and makes a
// new one.
func openSocketDir(log *slog.Logger) (*socketDir, error) {
	temporary, err := filepath.Abs(os.TempDir()) // workers are known by this path, wherever they are
	if err != nil {
		return nil, fmt.Errorf("find the directory for temporary files: %w", err)
	}
	sweepSocketDirs(temporary, log)
	path, err := os.MkdirTemp(temporary, socketDirPrefix) // mode 0700
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

// sweepSocketDirs removes directories whose lock nobody has, and kills first what still runs of their workers: their managers were
// killed together with their reapers. One without a lock file is just being made.
func sweepSocketDirs(temporary string, log *slog.Logger) {
	entries, err := os.ReadDir(temporary)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(temporary, e.Name())
		if !strings.HasPrefix(e.Name(), socketDirPrefix) || !isOurs(path) {
			continue
		}
		lock, err := lockDir(path, 0)
		if err != nil {
			continue
		}
		killed, clean := reaper.Sweep(path)
		log.Info("removing what a manager left that was killed", "directory", path, "processes", killed)
		if !clean {
			log.Warn("some worker processes of a dead manager do not die", "directory", path)
		}
		if err := errors.Join(os.RemoveAll(path), lock.Close()); err != nil {
			log.Warn("worker sockets of a dead manager could not be removed", "directory", path, "error", err)
		}
	}
}

// isOurs reports whether a path is a directory that this user made. The directory for temporary files is everybody's, and the notes
// in ours say what to kill.
func isOurs(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// Guard makes the manager start a small process beside itself that kills what is left of the workers when the manager dies, however
// that happens. The program is this one, called so that it calls reaper.Reap. To be called before Run; without it, the
// workers' own means remain: the kernel's signal at the death of their parent, and their lifeline.
func (o *Orchestrator) Guard(program ...string) { o.guard = program }

// openReaper starts the reaper of the directory, if there is to be one. It is told when the launcher, which ends before it, has left
// nothing.
func (o *Orchestrator) openReaper(dir *socketDir, stack *stages) {
	if len(o.guard) == 0 {
		return
	}
	keeper := reaper.NewKeeper(dir.path, o.guard, o.log)
	stack.start("reaper of workers", keeper.Run)
	stack.onStop("reaper's work", func() error {
		if o.launcher != nil && o.launcher.Clean() {
			keeper.Dismiss()
		}
		return nil
	})
	<-keeper.Tried()
}
