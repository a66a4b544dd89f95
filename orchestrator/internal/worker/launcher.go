package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// maxSocketDir bounds the socket directory's path, in bytes: go-plugin adds a directory and a name of up to 40, and the
// kernel allows 107 for a Unix socket.
const maxSocketDir = 107 - 40

// Launcher starts worker processes. Every process is started from one thread that lives as long as Run does, because
// the kernel's parent-death signal follows the thread that forked (golang/go#27505).
type Launcher struct {
	log       *slog.Logger
	socketDir string
	starts    chan func()
	ended     chan struct{} // closed when Run has returned
	lastID    atomic.Uint64
	processes sync.WaitGroup
}

// NewLauncher returns a launcher whose processes have their sockets below socketDir, which must exist, be private to this
// manager (mode 0700) and have a path of at most 67 bytes.
func NewLauncher(socketDir string, log *slog.Logger) (*Launcher, error) {
	if len(socketDir) > maxSocketDir {
		return nil, fmt.Errorf("the directory for worker sockets %q has %d bytes, at most %d are possible: set TMPDIR to a shorter path", socketDir, len(socketDir), maxSocketDir)
	}
	info, err := os.Stat(socketDir)
	if err != nil {
		return nil, fmt.Errorf("look at the directory for worker sockets: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the directory for worker sockets %s is open to others (mode %o): make it 0700", socketDir, info.Mode().Perm())
	}
	return &Launcher{log: log, socketDir: socketDir, starts: make(chan func()), ended: make(chan struct{})}, nil
}

// Run serves starts until ctx ends and every process has been waited for. The kernel kills what is left when it returns.
func (l *Launcher) Run(ctx context.Context) error {
	gone := make(chan struct{})
	go func() {
		<-ctx.Done()
		l.processes.Wait()
		close(gone)
	}()
	threadDone := make(chan struct{})
	go func() {
		defer close(threadDone)
		runtime.LockOSThread() // never unlocked: the thread must end with this goroutine, and not before
		for {
			select {
			case start := <-l.starts:
				start()
			case <-gone:
				return
			}
		}
	}()
	<-threadDone
	close(l.ended)
	return nil
}

// errLauncherEnded says that a start came after the launcher's end.
var errLauncherEnded = errors.New("the manager is stopping")

// onThread runs start on the launcher's thread and waits for it.
func (l *Launcher) onThread(ctx context.Context, start func() error) error {
	result := make(chan error, 1)
	select {
	case l.starts <- func() { result <- start() }:
		return <-result
	case <-l.ended:
		return errLauncherEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
