package lock

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// fusePause is how long a server that did not answer is left alone. Calls fail at once meanwhile, so that a thousand tasks
// that wait for it cost one call, and a stop does not wait for each of them.
const fusePause = 250 * time.Millisecond

// fuse remembers that a server does not answer.
type fuse struct {
	mu    sync.Mutex
	until time.Time
	cause error
}

// blown returns why a call must not be made now; nil when it may.
func (f *fuse) blown() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause == nil || time.Now().After(f.until) {
		return nil
	}
	return fmt.Errorf("not tried again yet: %w", f.cause)
}

// note takes down how a call went. One of several calls at once that got an answer says that the server is there.
func (f *fuse) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cause = err
	if err != nil {
		f.until = time.Now().Add(fusePause)
	}
}

// errChanging is returned when a lock changed hands again and again while it was looked at.
var errChanging = errors.New("the lock changes hands too fast to be read: try again")
