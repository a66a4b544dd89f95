package bridge

import (
	"context"
	"sync"
	"time"
)

// crew keeps the persistent children that have nothing to do, and paces the start of new ones. A child that is busy belongs
// to its task alone.
type crew struct {
	mu       sync.Mutex
	idle     []*session // the one used last is taken first, so that the others stay out of memory
	coming   []*spare   // being started, and claimed by no task
	failures int        // deaths in a row, without an answer in between
	next     time.Time  // when the next child may be started
}

// take returns an idle child that lives; nil when there is none.
func (c *crew) take() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.idle) > 0 {
		last := len(c.idle) - 1
		s := c.idle[last]
		c.idle = c.idle[:last]
		if s.alive() {
			return s
		}
	}
	return nil
}

// give takes back a child that has nothing to do.
func (c *crew) give(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, s)
}

// wait holds a start up until its time has come, or ctx ends.
func (c *crew) wait(ctx context.Context) error {
	c.mu.Lock()
	next := c.next
	c.mu.Unlock()
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// died notes that a child ended by itself, or could not be started.
func (c *crew) died() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	c.next = time.Now().Add(restartPause(c.failures))
}

// answered notes that children work.
func (c *crew) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures, c.next = 0, time.Time{}
}

// close ends the idle children, all at once, and returns when they are gone.
func (c *crew) close() {
	c.mu.Lock()
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	var ending sync.WaitGroup
	for _, s := range idle {
		ending.Go(s.end)
	}
	ending.Wait()
}

// restartPause is how long to wait before a new child after a number of deaths in a row: the first is replaced at once.
func restartPause(deaths int) time.Duration {
	const first, most = 100 * time.Millisecond, 5 * time.Second
	pause := time.Duration(0)
	for n := 1; n < deaths && pause < most; n++ {
		pause = max(first, 2*pause)
	}
	return min(pause, most)
}
