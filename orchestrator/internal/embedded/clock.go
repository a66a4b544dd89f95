package embedded

import (
	"context"
	"sync"
	"time"
)

const (
	minTick = 100 * time.Millisecond
	maxTick = time.Second
	// tickShare keeps the walk that expires keys under 1/50 of the time.
	tickShare = 50
	// jump is the difference between the two clocks above which one was set.
	jump = time.Second
)

// clock is the wall-clock time up to which keys have been expired. miniredis
// counts a key's time to live down when it is told to, so "clock + time to
// live" is the moment at which a key ends, and stays the same between ticks.
type clock struct {
	mu   sync.Mutex // held while keys are expired or read, so that the two agree
	wall int64      // milliseconds since 1970
	last time.Time
}

func (c *clock) start(now time.Time) { c.wall, c.last = now.UnixMilli(), now }

// advance moves the clock to now and returns by how much keys have aged. The
// caller holds mu.
func (c *clock) advance(now time.Time) time.Duration {
	wall := time.Duration(now.UnixMilli()-c.wall) * time.Millisecond
	aged, set := age(now.Sub(c.last), wall)
	c.last = now
	c.wall += aged.Milliseconds()
	if set {
		c.wall = now.UnixMilli()
	}
	return aged
}

// age decides how much older keys are after mono on the monotonic clock and
// wall on the wall clock. Forward jumps of the wall clock (the machine slept,
// the time was corrected) count, as in Redis; after a jump backwards keys keep
// the rest of their time and the clock has to be set (set is true).
func age(mono, wall time.Duration) (aged time.Duration, set bool) {
	if wall < mono-jump {
		return max(mono.Truncate(time.Millisecond), 0), true
	}
	return max(wall.Truncate(time.Millisecond), 0), false
}

// expire ages keys until ctx ends.
func (b *Broker) expire(ctx context.Context) {
	timer := time.NewTimer(minTick)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		begun := time.Now()
		b.clock.mu.Lock()
		b.redis.FastForward(b.clock.advance(begun))
		b.clock.mu.Unlock()
		timer.Reset(min(max(tickShare*time.Since(begun), minTick), maxTick))
	}
}
