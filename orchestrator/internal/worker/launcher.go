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
	ended     chan struct{} // closed when no start is served any more
	untraced  bool          // tracing is forbidden; belongs to the thread
	lastID    atomic.Uint64
	processes sync.WaitGroup
	adopts    bool        // see AdoptOrphans
	unclean   atomic.Bool // something of a worker may be left
	forking   sync.Mutex  // held while a process is made

	mu   sync.Mutex
	live map[int]*processRunner // those that are not collected, by process number
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
	return &Launcher{log: log, socketDir: socketDir, starts: make(chan func()), ended: make(chan struct{}), live: map[int]*processRunner{}}, nil
}

// Run serves starts until ctx ends, and returns when every process that was started has been collected. It kills none:
// whoever started them ends them.
func (l *Launcher) Run(ctx context.Context) error {
	adopting, stopAdopting := context.WithCancel(context.Background())
	var adoption sync.WaitGroup
	if l.adopts {
		adoption.Go(func() { l.adopt(adopting) })
	}
	defer adoption.Wait()
	defer stopAdopting()
	threadDone := make(chan struct{})
	go func() {
		defer close(threadDone)
		runtime.LockOSThread() // never unlocked: the thread must end with this goroutine, and not before
		l.serve(ctx)
		l.processes.Wait()
	}()
	<-threadDone
	return nil
}

// Clean reports, after Run, that nothing is left of any process, as far as the launcher can tell.
func (l *Launcher) Clean() bool { return !l.unclean.Load() }

// serve carries out starts on its own thread until ctx ends.
func (l *Launcher) serve(ctx context.Context) {
	defer close(l.ended)
	for {
		select {
		case start := <-l.starts:
			start()
		case <-ctx.Done():
			return
		}
	}
}

// errLauncherEnded says that a start came after the launcher's end.
var errLauncherEnded = errors.New("the manager is stopping")

// onThread runs start on the launcher's thread and waits for it. After a success there is one process more to wait for.
func (l *Launcher) onThread(ctx context.Context, start func() error) error {
	result := make(chan error, 1)
	counted := func() {
		l.forking.Lock()
		err := start()
		l.forking.Unlock()
		if err == nil {
			l.processes.Add(1) // here, so that serve cannot have returned before
		}
		result <- err
	}
	select {
	case l.starts <- counted:
		return <-result
	case <-l.ended:
		return errLauncherEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
