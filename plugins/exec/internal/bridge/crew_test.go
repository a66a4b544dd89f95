package bridge

import (
	"testing"
	"time"
)

// The first death is made good at once, further ones in a row after pauses that double up to a bound.
func TestRestartPause(t *testing.T) {
	t.Parallel()
	for deaths, pause := range map[int]time.Duration{
		0: 0, 1: 0, 2: 100 * time.Millisecond, 3: 200 * time.Millisecond, 5: 800 * time.Millisecond, 8: 5 * time.Second, 1000: 5 * time.Second,
	} {
		if got := restartPause(deaths); got != pause {
			t.Errorf("after %d deaths: %s, want %s", deaths, got, pause)
		}
	}
}
