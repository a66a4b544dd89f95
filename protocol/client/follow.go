package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

// Pauses before a subscription asks again after its stream broke.
const (
	reconnectFirst = 50 * time.Millisecond
	reconnectLast  = 2 * time.Second
)

var (
	errEnough     = errors.New("enough") // the consumer has left the loop
	errUnreadable = errors.New("the manager sent what cannot be read")
)

// Subscribe implements Client. When the stream breaks, because the manager restarts for example, it asks again for the
// tasks that are left, until ctx ends. Events that are not ends may be lost meanwhile; no end is.
func (a *api) Subscribe(ctx context.Context, ids []task.ID, options ...FollowOption) iter.Seq2[Update, error] {
	ids = slices.Clone(ids)
	following := ApplyFollow(options)
	return func(yield func(Update, error) bool) {
		s := &subscription{a: a, yield: yield, events: following.Events, left: make(map[task.ID]struct{}, len(ids))}
		if err := s.run(ctx, ids); err != nil && !errors.Is(err, errEnough) {
			yield(Update{}, err)
		}
	}
}

// subscription is one loop over updates.
type subscription struct {
	a      *api
	yield  func(Update, error) bool
	events bool
	left   map[task.ID]struct{} // the tasks whose end is still to come
	spoken bool                 // the manager has answered once
}

func (s *subscription) run(ctx context.Context, ids []task.ID) error {
	ctx, done, err := s.a.calls.begin(ctx)
	if err != nil {
		return fmt.Errorf("wait for %d tasks: %w", len(ids), err)
	}
	defer done()
	if err := s.sort(ids); err != nil {
		return err
	}
	pause := reconnectFirst
	for first := true; len(s.left) > 0; first = false {
		before := len(s.left)
		err := s.stream(ctx)
		what := fmt.Sprintf("wait for %d tasks", len(s.left))
		switch {
		case len(s.left) == 0 || errors.Is(err, errEnough):
			return err
		case s.a.calls.isClosed():
			return fmt.Errorf("%s: %w", what, ErrClosed)
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case errors.Is(err, errUnreadable):
			return fmt.Errorf("%s: %w", what, err)
		case !s.worthRetry(err, first):
			return explain(ctx, what, err, ErrUnknownTask, nil)
		}
		if len(s.left) < before {
			pause = reconnectFirst
		}
		if rest(ctx, pause/2+rand.N(pause/2)) != nil {
			continue // the next stream finds out why
		}
		pause = min(2*pause, reconnectLast)
	}
	return nil
}

// sort fills left and answers for the tasks that cannot exist, since the manager would refuse the whole list for them.
func (s *subscription) sort(ids []task.ID) error {
	var unsound []task.ID
	for _, id := range ids {
		if parsed, err := task.ParseID(id.String()); err == nil && parsed == id {
			s.left[id] = struct{}{}
		} else if !slices.Contains(unsound, id) {
			unsound = append(unsound, id)
		}
	}
	for _, id := range unsound {
		if !s.yield(Update{ID: id, Unknown: true}, nil) {
			return errEnough
		}
	}
	return nil
}

// stream asks for what is left and hands on what comes until the stream ends.
func (s *subscription) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	request := &apiv1.SubscribeRequest{Progress: s.events, Ids: make([]string, 0, len(s.left))}
	for id := range s.left {
		request.Ids = append(request.Ids, id.String())
	}
	stream, err := s.a.tasks.Subscribe(ctx, request)
	if err != nil {
		cancel()
		return err
	}
	defer func() { _ = stream.Close() }()                                                      // it has nothing to say that Err did not
	defer cancel()                                                                             // first, so that Close does not wait for what is still to come
	if strings.HasPrefix(stream.ResponseHeader().Get("Content-Type"), "application/connect") { // it waits for the answer
		s.spoken = true
	}
	for stream.Receive() {
		if err := s.take(stream.Msg()); err != nil {
			return err
		}
	}
	return stream.Err()
}

// take hands on one message.
func (s *subscription) take(m *apiv1.SubscribeResponse) error {
	var u Update
	switch {
	case m.GetEnded() != nil:
		t, err := task.FromProto(m.GetEnded())
		if err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
		u = Update{ID: t.ID, Ended: t}
	case m.GetEvent() != nil:
		e, err := task.EventFromProto(m.GetEvent())
		if err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
		u = Update{ID: e.ID, Event: e}
	case m.GetUnknownId() != "":
		id, err := task.ParseID(m.GetUnknownId())
		if err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
		u = Update{ID: id, Unknown: true}
	default: // of a manager to come
		return nil
	}
	if _, waiting := s.left[u.ID]; !waiting {
		return nil
	}
	if u.Event == nil {
		delete(s.left, u.ID)
	}
	if !s.yield(u, nil) {
		return errEnough
	}
	return nil
}

// worthRetry reports whether asking again may help. A manager that was never there, or that says at once that it cannot,
// has answered; one that answered before and does not now is one that restarts.
func (s *subscription) worthRetry(err error, first bool) bool {
	switch code := connect.CodeOf(err); {
	case err == nil: // the manager ended the stream too early
		return true
	case !connect.IsWireError(err):
		return s.spoken && code != connect.CodeUnimplemented
	case code == connect.CodeAborted:
		return true
	case code == connect.CodeResourceExhausted: // the others that wait for the manager's return were there first
		return s.spoken && !first
	case code == connect.CodeUnavailable:
		return !first
	default:
		return false
	}
}

// rest returns nil after d, the context's error when it ends first.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
