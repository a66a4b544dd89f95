package intake

import (
	"slices"
	"sync"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// fetched is what one pull took and asynq has not asked for yet.
type fetched struct {
	mu    sync.Mutex
	tasks []*held
}

func (f *fetched) push(tasks []*held) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks = append(f.tasks, tasks...)
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

// giveBackFetched puts back what asynq never asked for, the newest first, so that the oldest ends at the head.
func (l *lane) giveBackFetched() {
	l.fetched.mu.Lock()
	tasks := l.fetched.tasks
	l.fetched.tasks = nil
	l.fetched.mu.Unlock()
	for _, t := range slices.Backward(tasks) {
		l.settler.put(t, job.Verdict{Move: job.GiveBack, State: task.Waiting, Counters: t.counters}, nil)
	}
}
