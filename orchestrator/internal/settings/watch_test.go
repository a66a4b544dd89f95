package settings_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// A watcher gets what holds now, then only the newest; one that never reads holds up nobody; the channel ends with its context.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow, quick := s.Watch(ctx), s.Watch(ctx)
	if snap := <-quick; snap.Version != 1 {
		t.Errorf("began with version %d", snap.Version)
	}
	for i := range 50 {
		if _, err := s.Apply([]settings.Change{{Queue: "a", Name: "buffer", Value: strconv.Itoa(i)}}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	for name, ch := range map[string]<-chan *settings.Snapshot{"slow": slow, "quick": quick} {
		if snap := <-ch; snap != s.Load() || snap.Queues["a"].Buffer != 49 {
			t.Errorf("%s got version %d, want the newest", name, snap.Version)
		}
	}
	if _, err := s.Apply([]settings.Change{{Queue: "a", Name: "slots", Value: "0"}}, "test"); err == nil {
		t.Fatal("slots=0 was accepted")
	}
	select {
	case snap := <-quick:
		t.Errorf("a refused change was told as version %d", snap.Version)
	default:
	}
	cancel()
	for range slow {
		t.Error("a snapshot after the end")
	}
	if _, open := <-quick; open {
		t.Error("a snapshot after the end")
	}
	if _, err := s.Apply([]settings.Change{{Queue: "a", Name: "slots", Value: "2"}}, "test"); err != nil {
		t.Error(err)
	}
}

// Watchers that come and go while changes run see versions that only grow, and the last one is the newest.
func TestWatchUnderChange(t *testing.T) {
	t.Parallel()
	const changes = 200
	s := newStore(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var last settings.Version
			for snap := range s.Watch(ctx) {
				if snap.Version <= last {
					t.Errorf("version %d after %d", snap.Version, last)
				}
				if last = snap.Version; last == changes+1 {
					cancel()
				}
			}
			if last != changes+1 {
				t.Errorf("ended at version %d", last)
			}
		})
		all.Go(func() {
			for range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				<-s.Watch(ctx)
				cancel()
			}
		})
	}
	for i := range changes {
		if _, err := s.Apply([]settings.Change{{Queue: "b", Name: "buffer", Value: strconv.Itoa(i)}}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
}
