package settings

import "context"

// Watch returns a channel that gives the settings that hold now and then each newer snapshot. A watcher that is slow misses the
// ones between and gets the newest; it never holds up a change. The channel is closed when the context ends.
func (s *Store) Watch(ctx context.Context) <-chan *Snapshot {
	ch := make(chan *Snapshot, 1)
	s.mu.Lock()
	ch <- s.Load()
	s.watchers[ch] = struct{}{}
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, ch)
		close(ch)
	})
	return ch
}

// tell replaces what a watcher has not yet taken. mu is held, so nobody else sends and the second step finds room.
func (s *Store) tell(snap *Snapshot) {
	for ch := range s.watchers {
		select {
		case <-ch:
		default:
		}
		ch <- snap
	}
}
