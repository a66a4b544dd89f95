package orchestrator

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/orchestrator/internal/settings/overlay"
)

// overlayName is the overlay file in the state directory: the live changes that outlive a restart.
const overlayName = "settings.yaml"

// savedSettings is the overlay file and what was wrong with it. A broken one never keeps the manager from starting: it is
// told in the log and in the status, what does not hold is left out, and the next save replaces it.
type savedSettings struct {
	path string

	mu       sync.Mutex
	problems []string
}

func newSavedSettings(stateDir string) *savedSettings {
	return &savedSettings{path: filepath.Join(stateDir, overlayName)}
}

// restore lays what was saved over the configuration, and returns what is not used and why.
func (s *savedSettings) restore(store *settings.Store) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved, err := overlay.Read(s.path)
	if err != nil {
		s.problems = []string{fmt.Sprintf("the saved settings are not used: %v; the next save puts the file aside", err)}
		return s.problems
	}
	if saved.Len() == 0 {
		return nil
	}
	for _, p := range store.Restore(saved, "saved settings, "+s.path) {
		part := "of the manager"
		if p.Queue != "" {
			part = "of queue " + p.Queue
		}
		s.problems = append(s.problems, fmt.Sprintf("the saved settings %s are not used, because they do not hold with the configuration of today: %s", part, p))
	}
	return s.problems
}

// warnings is what is not used and why, until the next save.
func (s *savedSettings) warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// write saves the live changes and returns how many there are.
func (s *savedSettings) write(store *settings.Store, who string, when time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := store.Save(func(o settings.Overlay) error { return overlay.Write(s.path, o, who, when) })
	if err == nil {
		s.problems = nil
	}
	return n, err
}
