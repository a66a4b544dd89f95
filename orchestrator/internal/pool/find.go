package pool

import (
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// Find says where a task is in this pool: held while it waits for a process, else since when it runs. Not ok when it is not here.
func (p *Pool) Find(id task.ID) (started time.Time, held, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.buffer {
		if j.ID == id {
			return time.Time{}, true, true
		}
	}
	for _, m := range p.members {
		for j, since := range m.running {
			if j.ID == id {
				return since, false, true
			}
		}
	}
	return time.Time{}, false, false
}
