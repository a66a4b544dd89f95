package pool

import "time"

// averages are moving means of what Decide is told.
type averages struct {
	run   time.Duration
	start time.Duration
}

// meanOf gives the newest value an eighth of the weight.
func meanOf(mean, newest time.Duration) time.Duration {
	if mean == 0 {
		return newest
	}
	return mean + (newest-mean)/8
}

func (a *averages) ran(d time.Duration)     { a.run = meanOf(a.run, max(1, d)) }
func (a *averages) started(d time.Duration) { a.start = meanOf(a.start, max(1, d)) }
