package direct

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	// Tasks looked at in one round trip. It is as many as have chunkBytes together, as the ones before had, so that a subscription
	// holds few large results at once.
	chunkFirst = 16
	chunkMost  = 200
	chunkBytes = 256 << 10

	// maxLooks bounds the looks of all subscriptions of a client at one time: thousands that begin together, or look again after a
	// lost connection, would else take every connection to Redis from submits, and from the manager that shares them.
	maxLooks = 4

	// All tasks of a subscription are looked at again from time to time, should an event be lost all the same; the more
	// there are, the rarer.
	safetyEvery   = 10 * time.Second
	safetyPerTask = 200 * time.Microsecond

	retryFirst = 100 * time.Millisecond // pause before tasks are looked at again because Redis did not answer
	retryLast  = 2 * time.Second
	// grace is how long the end of a task that has vanished may be under way: it kept no record, and the look was
	// faster than the event.
	grace = 300 * time.Millisecond
)

// errEnough says that the consumer has left the loop.
var errEnough = errors.New("enough")

// Subscribe implements client.Client. It works in the goroutine of its consumer and starts none. While Redis is away it
// goes on waiting, except when it is away from the beginning.
func (c *Client) Subscribe(ctx context.Context, ids []task.ID, options ...client.FollowOption) iter.Seq2[client.Update, error] {
	ids = slices.Clone(ids)
	following := client.ApplyFollow(options)
	return func(yield func(client.Update, error) bool) {
		s := &subscription{c: c, yield: yield, box: newFollower(following.Events), waiting: map[task.ID]*watch{}, queues: map[string]struct{}{}, chunk: chunkFirst}
		if err := s.run(ctx, ids); err != nil && !errors.Is(err, errEnough) {
			yield(client.Update{}, fmt.Errorf("wait for %d tasks: %w", len(s.waiting), err))
		}
	}
}

// subscription is one loop over updates. Only its consumer's goroutine touches it, the box aside.
type subscription struct {
	c       *Client
	yield   func(client.Update, error) bool
	box     *follower
	waiting map[task.ID]*watch // the tasks whose end is still to come
	queues  map[string]struct{}
	due     []task.ID // to be looked at next, each once
	seen    bool      // Redis has answered once
	chunk   int       // tasks in the next round trip
}

// watch is what a subscription knows of a task that it waits for.
type watch struct {
	due   bool
	alive bool      // it was seen before its end
	life  int64     // which life of the ID that was
	gone  time.Time // since when it was not there any more
	end   *task.Event
}

func (s *subscription) run(ctx context.Context, ids []task.ID) error {
	if err := s.begin(ids); err != nil {
		return err
	}
	defer s.leave()
	retry := retryFirst
	timer := time.NewTimer(s.safety())
	defer timer.Stop()
	for {
		err := s.step(ctx)
		switch {
		case err == nil && len(s.waiting) == 0:
			return nil
		case err == nil && len(s.due) > 0:
			timer.Reset(grace)
			retry = retryFirst
		case err == nil:
			timer.Reset(s.safety())
			retry = retryFirst
		case errors.Is(err, client.ErrUnavailable) && s.seen:
			timer.Reset(retry)
			retry = min(2*retry, retryLast)
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.c.closing:
			return client.ErrClosed
		case <-s.box.notify:
		case <-timer.C:
			if len(s.due) == 0 {
				s.lookAll("")
			}
		}
	}
}

// begin answers for the tasks that cannot exist and registers for the others.
func (s *subscription) begin(ids []task.ID) error {
	follow := make([]task.ID, 0, len(ids))
	told := map[task.ID]bool{}
	for _, id := range ids {
		switch {
		case s.waiting[id] != nil || told[id]:
		case !sound(id):
			told[id] = true
			if !s.yield(client.Update{ID: id, Unknown: true}, nil) {
				return errEnough
			}
		default:
			s.waiting[id] = &watch{}
			s.queues[id.Queue] = struct{}{}
			follow = append(follow, id)
		}
	}
	if len(follow) == 0 {
		return nil
	}
	return s.c.events.follow(s.box, follow)
}

func (s *subscription) leave() {
	left := make([]task.ID, 0, len(s.waiting))
	for id := range s.waiting {
		left = append(left, id)
	}
	s.c.events.leave(s.box, left, s.queues)
}

// step empties the box and looks at the tasks that are due.
func (s *subscription) step(ctx context.Context) error {
	m := s.box.fetch()
	for _, e := range m.news {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.waiting[e.ID] != nil && !s.yield(client.Update{ID: e.ID, Event: e}, nil) {
			return errEnough
		}
	}
	for id, e := range m.ends {
		if w := s.waiting[id]; w != nil {
			w.end = e
			s.lookAt(id, w)
		}
	}
	for queue := range m.looks {
		s.lookAll(queue)
	}
	again := s.due[:0:0]
	for len(s.due) > 0 {
		part := s.due[:min(s.chunk, len(s.due))]
		sights, err := s.look(ctx, part)
		if err != nil {
			s.due = append(again, s.due...)
			return err
		}
		s.seen = true
		s.due = s.due[len(part):]
		for i, id := range part {
			if err := ctx.Err(); err != nil { // the consumer may have taken its time over the one before
				return err
			}
			w := s.waiting[id]
			w.due = false
			if err := s.settle(id, w, sights[i]); err != nil {
				return err
			}
			if !w.gone.IsZero() && s.waiting[id] != nil {
				w.due = true
				again = append(again, id)
			}
		}
	}
	s.due = again
	return nil
}

// look looks at some tasks when it is its turn.
func (s *subscription) look(ctx context.Context, ids []task.ID) ([]sight, error) {
	select {
	case s.c.looks <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.c.closing:
		return nil, client.ErrClosed
	}
	sights, err := s.c.peekAll(ctx, ids, recordOnly)
	<-s.c.looks
	if err != nil {
		return nil, err
	}
	bytes := 1
	for _, seen := range sights {
		if seen.task != nil {
			bytes += len(seen.task.Result) + len(seen.task.Payload)
		}
	}
	s.chunk = max(1, min(2*s.chunk, chunkMost, chunkBytes*len(ids)/bytes))
	return sights, nil
}

// settle draws the conclusion from what was seen of a task.
func (s *subscription) settle(id task.ID, w *watch, seen sight) error {
	if w.end == nil && seen.task == nil {
		w.end = s.box.end(id) // it may have come while Redis was asked
	}
	switch {
	case seen.task != nil && seen.task.State.Ended():
		ended := *seen.task
		ended.Payload = nil
		return s.finish(client.Update{ID: id, Ended: &ended})
	case seen.task == nil && w.end != nil: // no record is kept
		return s.finish(client.Update{ID: id, Ended: ended(w.end)})
	case seen.task == nil && w.alive && w.gone.IsZero():
		w.gone = time.Now()
		return nil
	case seen.task == nil && w.alive && time.Since(w.gone) < grace:
		return nil
	case seen.task == nil:
		return s.finish(client.Update{ID: id, Unknown: true})
	case w.end != nil && w.alive && w.life != seen.life: // it ended and was submitted again at once
		return s.finish(client.Update{ID: id, Ended: ended(w.end)})
	default: // an end that was told now is that of an earlier life: the event was slower than the submit
		w.alive, w.life, w.gone, w.end = true, seen.life, time.Time{}, nil
		return nil
	}
}

func (s *subscription) finish(u client.Update) error {
	delete(s.waiting, u.ID)
	s.c.events.forget(s.box, u.ID)
	if !s.yield(u, nil) {
		return errEnough
	}
	return nil
}

func (s *subscription) lookAt(id task.ID, w *watch) {
	if !w.due {
		w.due = true
		s.due = append(s.due, id)
	}
}

// lookAll makes all tasks of a queue due; those of all queues for "".
func (s *subscription) lookAll(queue string) {
	for id, w := range s.waiting {
		if queue == "" || id.Queue == queue {
			s.lookAt(id, w)
		}
	}
}

func (s *subscription) safety() time.Duration {
	return safetyEvery + time.Duration(len(s.waiting))*safetyPerTask
}

// ended makes the record of a task of which only the event of its end is left.
func ended(e *task.Event) *task.Task {
	t := &task.Task{ID: e.ID, State: e.State, Attempts: e.Attempts, Ended: e.At}
	if e.Fault != fault.None {
		t.Fault = fault.New(e.Fault, "no record of this task is kept, so no more is known")
	}
	return t
}
