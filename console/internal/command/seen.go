package command

import (
	"slices"
	"sync"

	"github.com/drover-jobs/drover/protocol/task"
)

// maxSeen is how many IDs are remembered.
const maxSeen = 500

// Seen remembers the tasks that a session has shown, for completion. A nil one remembers nothing. It is safe for concurrent
// use.
type Seen struct {
	mu  sync.Mutex
	ids []string // the oldest first
}

// add remembers a task as the latest.
func (s *Seen) add(id task.ID) {
	if s == nil || id.IsZero() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := id.String()
	if i := slices.Index(s.ids, text); i >= 0 {
		s.ids = slices.Delete(s.ids, i, i+1)
	}
	s.ids = append(s.ids, text)
	if len(s.ids) > maxSeen {
		s.ids = slices.Delete(s.ids, 0, len(s.ids)-maxSeen)
	}
}

// recent is what is remembered, the latest first.
func (s *Seen) recent() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.Clone(s.ids)
	slices.Reverse(ids)
	return ids
}
