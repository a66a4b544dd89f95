package settings_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// anyValue writes a value for the setting: mostly a good one, often at the edge, sometimes nonsense.
func anyValue(r *rand.Rand, s settings.Setting) string {
	switch r.IntN(10) {
	case 0:
		return []string{"", "-1", "off", "0", "12", "1.5", "9999999999", "10/s", "5m", "1GiB", "system", "\xff", "100d"}[r.IntN(13)]
	case 1:
		return s.Default
	case 2:
		if s.Kind != settings.KindChoice && s.Kind != settings.KindText {
			return []string{s.Min, s.Max}[r.IntN(2)]
		}
	}
	switch s.Kind {
	case settings.KindCount:
		return fmt.Sprint(r.IntN(200))
	case settings.KindDuration:
		return settings.FormatDuration(time.Duration(r.Int64N(int64(3 * time.Hour))))
	case settings.KindBytes:
		return settings.Bytes(r.Int64N(int64(4 * settings.GiB))).String()
	case settings.KindRate:
		return settings.Rate{Tasks: r.IntN(2000), Per: []time.Duration{time.Second, time.Minute, time.Hour}[r.IntN(3)]}.String()
	case settings.KindText:
		return []string{"@daily", "*/5 * * * *", "30 2 31 2 *", "UTC", "Europe/Berlin", "{}", `{"a": 1}`}[r.IntN(7)]
	default:
		return s.Choices[r.IntN(len(s.Choices))]
	}
}

// anyChanges makes one to four changes to the queues named, now and then to one that does not exist.
func anyChanges(r *rand.Rand, queues []string) []settings.Change {
	table := settings.Describe()
	changes := make([]settings.Change, 1+r.IntN(4))
	for i := range changes {
		s := table[r.IntN(len(table))]
		c := settings.Change{Name: s.Name, Value: anyValue(r, s), Unset: r.IntN(8) == 0}
		if s.Scope == settings.ScopeQueue {
			c.Queue = queues[r.IntN(len(queues))]
		}
		if s.Scope == settings.ScopeSchedule {
			c.Queue = settings.OfSchedule("s")
		}
		if r.IntN(40) == 0 {
			c.Queue = "nowhere"
		}
		if r.IntN(40) == 0 {
			c.Name += "x"
		}
		changes[i] = c
	}
	return changes
}

// Over thousands of random changes: what is accepted is whole and one version on, what is refused has a reason and changes
// nothing, and taking every live value away leads back to the start.
func TestRandomChanges(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := newStore(t)
	first := s.Load()
	accepted, refused := 0, 0
	for range 1000 {
		old := s.Load()
		copied, schedules := maps.Clone(old.Queues), maps.Clone(old.Schedules)
		snap, err := s.Apply(anyChanges(r, []string{"a", "b"}), "test")
		if !maps.Equal(copied, old.Queues) || !maps.Equal(schedules, old.Schedules) {
			t.Fatal("a snapshot was changed after it had been handed out")
		}
		if err != nil {
			refused++
			if len(problems(t, err)) == 0 || s.Load() != old {
				t.Fatalf("refused without a reason, or with a change: %v", err)
			}
			continue
		}
		accepted++
		if snap.Version != old.Version+1 || s.Load() != snap {
			t.Fatalf("version %d after %d", snap.Version, old.Version)
		}
		whole(t, snap)
	}
	if accepted < 100 || refused < 100 {
		t.Errorf("%d accepted and %d refused: the test tests little", accepted, refused)
	}
	var all []settings.Change
	for _, d := range settings.Describe() {
		for _, queue := range map[settings.Scope][]string{settings.ScopeManager: {""}, settings.ScopeQueue: {"a", "b"}, settings.ScopeSchedule: {settings.OfSchedule("s")}}[d.Scope] {
			all = append(all, settings.Change{Queue: queue, Name: d.Name, Unset: true})
		}
	}
	snap, err := s.Apply(all, "test")
	if err != nil || !maps.Equal(snap.Queues, first.Queues) || !maps.Equal(snap.Schedules, first.Schedules) || snap.Manager != first.Manager {
		t.Errorf("after all was unset: %+v, %v; want %+v", snap, err, first)
	}
}

// Under concurrent changes every reader sees one valid whole with a version that never goes back, and no change is lost.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var writers, readers sync.WaitGroup
	var accepted sync.Map
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			var last settings.Version
			for {
				snap := s.Load()
				if snap.Version < last {
					t.Errorf("version %d after %d", snap.Version, last)
				}
				if snap.Version != last {
					whole(t, snap)
				}
				last = snap.Version
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 4 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
			for range 100 {
				if snap, err := s.Apply(anyChanges(r, []string{"a", "b"}), "test"); err == nil {
					if _, twice := accepted.LoadOrStore(snap.Version, true); twice {
						t.Errorf("two changes got version %d", snap.Version)
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	n := settings.Version(1)
	accepted.Range(func(any, any) bool { n++; return true })
	if got := s.Load().Version; got != n {
		t.Errorf("version %d after %d accepted changes", got, n-1)
	}
}
