package intake

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// fetched is what was taken and asynq has not asked for yet.
type fetched struct {
	mu    sync.Mutex
	tasks []*held
	ready chan struct{} // has an element when there may be some
}

func newFetched() *fetched { return &fetched{ready: make(chan struct{}, 1)} }

func (f *fetched) push(tasks []*held) {
	f.mu.Lock()
	f.tasks = append(f.tasks, tasks...)
	f.mu.Unlock()
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// pop returns the oldest; nil when there is none.
func (f *fetched) pop() *held {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.tasks) == 0 {
		return nil
	}
	t := f.tasks[0]
	f.tasks[0] = nil
	f.tasks = f.tasks[1:]
	return t
}

func (f *fetched) takeAll() []*held {
	f.mu.Lock()
	defer f.mu.Unlock()
	tasks := f.tasks
	f.tasks = nil
	return tasks
}

// longestNext bounds one call of asynq's dequeue. asynq takes its time at the beginning of the call as the beginning of the
// lease, so it must be short against the lease.
const longestNext = time.Second

// next returns the message of the next task, or redis.Nil when there is none for now. asynq calls it from one goroutine.
func (l *lane) next() (string, error) {
	l.nextTimer.Reset(longestNext)
	for !l.closing() {
		if t := l.fetched.pop(); t != nil {
			return t.forAsynq(), nil
		}
		select {
		case <-l.fetched.ready:
		case <-l.closed:
		case <-l.nextTimer.C:
			return "", redis.Nil
		}
	}
	return "", redis.Nil
}
