package lock

import (
	"cmp"
	"slices"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// Info is one lock of this manager, or one job that waits for a lock.
type Info struct {
	Key   string // as people read it
	Queue string
	Task  task.ID
	Since time.Time // of the lock, or of the wait
	// Until is when the lock is not believed in any more unless it is renewed; zero for one that is waited for.
	Until time.Time
	// Holder is who has a lock that is waited for, as far as that is known; its own task for one that is held.
	Holder Holder
}

// Held returns the locks that this manager has, the oldest first.
func (l *Locker) Held() []Info {
	return l.list(func(e *entry) bool { return e.held && e.phase != settling })
}

// Waiting returns the jobs that wait for a lock, the oldest first.
func (l *Locker) Waiting() []Info {
	return l.list(func(e *entry) bool { return e.phase == waiting || e.phase == settling })
}

// Waits reports whether a task waits here for its lock, or is just being handed on.
func (l *Locker) Waits(id task.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.job.ID == id && e.phase != passed {
			return true
		}
	}
	return false
}

func (l *Locker) list(wanted func(*entry) bool) []Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Info
	for _, e := range l.entries {
		if !wanted(e) {
			continue
		}
		info := Info{Key: e.key.String(), Queue: e.queue.Queue, Task: e.job.ID, Since: e.since, Holder: e.holder}
		if e.held {
			info.Until, info.Holder = e.fence, Holder{Task: e.job.ID, Manager: l.Manager, Since: e.since}
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b Info) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Task.String(), b.Task.String()))
	})
	return all
}
