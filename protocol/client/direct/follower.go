package direct

import (
	"sync"

	"github.com/drover-jobs/drover/protocol/task"
)

// maxNews bounds the events that are not ends and that a follower has not fetched; the oldest are left out.
const maxNews = 1024

// follower is the mailbox between the hub and one subscription. Putting in never blocks: of ends there is at most one
// for each task, of other events the last maxNews.
type follower struct {
	notify chan struct{} // holds one: something was put in

	mu     sync.Mutex
	events bool // whether events that are not ends are wanted
	mail   mail
}

// mail is what a follower holds.
type mail struct {
	ends  map[task.ID]*task.Event
	news  []*task.Event
	looks map[string]struct{} // queues whose tasks are to be looked at
}

func newFollower(events bool) *follower {
	return &follower{notify: make(chan struct{}, 1), events: events}
}

// take puts an event in.
func (f *follower) take(e *task.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case e.State.Ended():
		if f.mail.ends == nil {
			f.mail.ends = map[task.ID]*task.Event{}
		}
		f.mail.ends[e.ID] = e
	case f.events:
		if len(f.mail.news) >= maxNews {
			f.mail.news = f.mail.news[1:]
		}
		f.mail.news = append(f.mail.news, e)
	default:
		return
	}
	f.wake()
}

// look asks the subscription to look at its tasks of a queue.
func (f *follower) look(queue string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mail.looks == nil {
		f.mail.looks = map[string]struct{}{}
	}
	f.mail.looks[queue] = struct{}{}
	f.wake()
}

func (f *follower) wake() {
	select {
	case f.notify <- struct{}{}:
	default:
	}
}

// fetch empties the mailbox.
func (f *follower) fetch() mail {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.mail
	f.mail = mail{}
	return m
}

// end takes the end of one task out, nil when there is none.
func (f *follower) end(id task.ID) *task.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.mail.ends[id]
	delete(f.mail.ends, id)
	return e
}
