package judge

import "github.com/drover-jobs/drover/orchestrator/internal/chaos/actor"

func stoppedInTime(c *Case, f *Finding) {
	for _, s := range c.Stops {
		f.Checked++
		switch {
		case s.Hung:
			f.breach("manager %s did not end within %s of SIGTERM and was killed", s.Manager, s.Took())
		case s.Took() > c.Bounds.Stop:
			f.breach("manager %s ended %s after SIGTERM, want %s at most", s.Manager, s.Took(), c.Bounds.Stop)
		}
	}
}

// reportedTruly holds the report against what can be seen: the exit code says the same, tasks are left only when Redis was away
// during the stop, and nothing of the workers is there any more.
func reportedTruly(c *Case, f *Finding) {
	for _, s := range c.Stops {
		if s.Hung {
			continue
		}
		f.Checked++
		switch {
		case s.Finished < 0 || s.Returned < 0 || s.Left < 0:
			f.breach("manager %s ended with exit code %d and no report", s.Manager, s.Code)
			continue
		case (s.Left > 0) != (s.Code != 0):
			f.breach("manager %s says that %d tasks are left and ends with exit code %d", s.Manager, s.Left, s.Code)
		case s.Left > 0 && !c.away(s):
			f.breach("manager %s left %d tasks while Redis was there", s.Manager, s.Left)
		case s.Left > 0:
			f.Allowed++
		}
		for _, p := range s.Processes {
			f.breach("manager %s has stopped and process %d lives: %s", s.Manager, p.PID, p.Command)
		}
		for _, dir := range s.Dirs {
			f.breach("manager %s has stopped and left %s", s.Manager, dir)
		}
	}
}

func crashed(c *Case, f *Finding) {
	f.Checked = 1
	for _, crash := range append(c.Crashes, c.Problems...) {
		f.breach("%s", crash)
	}
}

// away reports whether Redis was away at a time of the stop, or had just come back.
func (c *Case) away(s actor.Stop) bool {
	for _, outage := range c.Outages {
		if outage.From <= s.To && outage.To+near >= s.From {
			return true
		}
	}
	return false
}
