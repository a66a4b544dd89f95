package bridge

import (
	"context"
	"slices"
)

// spare is a child that is being started in the background, in the place of one that has gone, so that the next task need not
// wait for all of its start: that would count as the task's run time. A task that finds no idle child claims it.
type spare struct {
	done chan struct{} // closed when it is known what came of the start; the fields below count then
	s    *session      // nil when there was an error
	err  error
}

// expect notes a spare whose start begins.
func (c *crew) expect() *spare {
	sp := &spare{done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.coming = append(c.coming, sp)
	return sp
}

// arrived notes what came of a spare's start. One that nobody has claimed becomes an idle child; when its start failed, the
// next task tries again, and is told why that fails.
func (c *crew) arrived(sp *spare, s *session, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sp.s, sp.err = s, err
	close(sp.done)
	if i := slices.Index(c.coming, sp); i >= 0 {
		c.coming = slices.Delete(c.coming, i, i+1)
		c.keep(s)
	}
}

// claim takes the spare that was expected first; nil when none is.
func (c *crew) claim() *spare {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.coming) == 0 {
		return nil
	}
	sp := c.coming[0]
	c.coming = slices.Delete(c.coming, 0, 1)
	return sp
}

// wait returns what came of the start of a spare that was claimed. When ctx ends first, the spare is there for others.
func (sp *spare) wait(ctx context.Context, c *crew) (*session, error) {
	select {
	case <-sp.done:
		return sp.s, sp.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-sp.done:
		c.keep(sp.s)
	default:
		c.coming = append(c.coming, sp)
	}
	return nil, context.Cause(ctx)
}

// keep makes a session idle, if there is one. The crew is locked.
func (c *crew) keep(s *session) {
	if s != nil {
		c.idle = append(c.idle, s)
	}
}
