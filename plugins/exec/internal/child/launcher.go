package child

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// Launcher starts children, all from one thread.
type Launcher struct {
	starts   chan func()
	ended    chan struct{} // closed when nothing is started any more
	children sync.WaitGroup
}

// NewLauncher returns a launcher. Nothing can be started before Run.
func NewLauncher() *Launcher {
	return &Launcher{starts: make(chan func()), ended: make(chan struct{})}
}

// Run serves starts until ctx ends, and returns when all children have been collected. It ends none of them.
func (l *Launcher) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread must end with this goroutine, and not before
		l.serve(ctx)
		l.children.Wait()
	}()
	<-done
}

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

// errEnded says that a start came after the launcher's end.
var errEnded = errors.New("the worker is stopping")

// onThread runs start on the launcher's thread. After a success there is one child more to wait for.
func (l *Launcher) onThread(start func() error) error {
	result := make(chan error, 1)
	counted := func() {
		err := start()
		if err == nil {
			l.children.Add(1) // here, so that serve cannot have returned before
		}
		result <- err
	}
	select {
	case l.starts <- counted:
		return <-result
	case <-l.ended:
		return errEnded
	}
}
