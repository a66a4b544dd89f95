package pool

import "time"

// Failed starts in a row that open the circuit, and the pauses between starts from the first failure on.
const (
	circuitThreshold = 3
	firstStartPause  = 100 * time.Millisecond
	longestPause     = 10 * time.Second
	// provenAge is from when on a process counts as a good start although it has finished nothing.
	provenAge = 10 * time.Second
)

// circuit keeps a program that cannot be started, or ends before it has done anything, from being started without end.
//
//	closed --3 failures in a row--> open --a start succeeds--> closed, on trial --a job finishes--> closed
//	                                 ^------------the next failure-----------'
//
// While it is open one start is tried from time to time. The pauses grow until a process has proven itself.
type circuit struct {
	failures  int
	opened    bool
	reason    string
	fruitless bool      // the latest failure was that of a worker which had started: it ended before it had finished anything
	last      time.Time // the latest failure that counted
	next      time.Time // no start before this
}

func (c *circuit) open() bool { return c.opened }

// broken opens the circuit of a program that is known not to start.
func (c *circuit) broken(reason string, now time.Time) {
	c.failures, c.opened, c.reason, c.fruitless, c.last, c.next = circuitThreshold, true, reason, false, now, now.Add(firstStartPause)
}

// failed takes the failure of a start that began some time ago. It reports whether that opened the circuit. Starts that were under
// way together fail for one reason, and count once.
func (c *circuit) failed(reason string, fruitless bool, began, now time.Time) bool {
	c.reason, c.fruitless = reason, fruitless
	if c.failures > 0 && !began.After(c.last) {
		return false
	}
	c.failures++
	c.last = now
	pause := longestPause
	if shift := c.failures - 1; shift < 16 {
		pause = min(longestPause, firstStartPause<<shift)
	}
	c.next = now.Add(pause)
	opens := !c.opened && c.failures >= circuitThreshold
	c.opened = c.opened || opens
	return opens
}

// trouble says in words what fails.
func (c *circuit) trouble() string {
	if c.fruitless {
		return "workers end before they have finished anything"
	}
	return "workers do not start"
}

// started takes a start that succeeded. It reports whether that closed the circuit.
func (c *circuit) started() bool {
	closes := c.opened
	c.opened = false
	return closes
}

// proven forgets the failures: a process did its work.
func (c *circuit) proven() {
	if c.failures > 0 && !c.opened {
		*c = circuit{}
	}
}
