package pool

import "time"

// Failed starts in a row that open the circuit, and the pauses between starts from the first failure on.
const (
	circuitThreshold = 3
	firstStartPause  = 100 * time.Millisecond
	longestPause     = 30 * time.Second
)

// circuit keeps a program that cannot be started from being started without end. It opens after a few failures; then one
// start is tried from time to time, and the first that succeeds closes it.
type circuit struct {
	failures int
	reason   string
	next     time.Time // no start before this
}

func (c *circuit) open() bool { return c.failures >= circuitThreshold }

func (c *circuit) failed(err error, now time.Time) {
	c.failures++
	c.reason = err.Error()
	pause := longestPause
	if shift := c.failures - 1; shift < 16 {
		pause = min(longestPause, firstStartPause<<shift)
	}
	c.next = now.Add(pause)
}

func (c *circuit) succeeded() { *c = circuit{} }
