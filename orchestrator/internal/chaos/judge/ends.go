package judge

import (
	"strconv"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

func recorded(c *Case, f *Finding) {
	for _, s := range c.Submissions {
		f.Checked++
		switch r := c.Records[s.ID]; {
		case r == nil:
			f.breach("%s (%s) has no record", s.ID, s.Order.Deed)
		case !r.State.Ended():
			f.breach("%s (%s) is %s, which is no end", s.ID, s.Order.Deed, r.State)
		}
	}
}

// asOrdered allows quarantine and death for a task whose processes the harness struck often enough: a manager cannot know that
// it was not the task.
func asOrdered(c *Case, f *Finding) {
	for _, s := range c.Submissions {
		r := c.Records[s.ID]
		if r == nil {
			continue
		}
		f.Checked++
		if r.State == s.Order.Want.State {
			continue
		}
		excused := c.excuses(s.ID)
		kills, charges := r.Counters.Kills, r.Counters.Kills+r.Counters.Failures
		mayKill := kills <= s.Order.Want.Kills+excused && excused > 0
		switch {
		case mayKill && r.State == task.Quarantined && kills >= plan.MaxKills,
			mayKill && r.State == task.Dead && charges >= plan.MaxFailures:
			f.Allowed++
		default:
			f.breach("%s (%s) is %s, want %s: %+v, %d excuses, %v", s.ID, s.Order.Deed, r.State, s.Order.Want.State, r.Counters, excused, reason(r))
		}
	}
}

func reason(r *task.Task) string {
	if r.Fault == nil {
		return "no fault"
	}
	return r.Fault.Error()
}

// ownResult knows the number of the order in the result. A task that joined the holder of its lock has the holder's.
func ownResult(c *Case, f *Finding) {
	for _, s := range c.Submissions {
		r := c.Records[s.ID]
		if r == nil || r.State != task.Completed || !s.Order.Want.Result || s.Order.Lock != "" {
			continue
		}
		f.Checked++
		if string(r.Result) != strconv.Itoa(s.Order.Number) {
			f.breach("%s (%s) has the result %.60s, want %d", s.ID, s.Order.Deed, r.Result, s.Order.Number)
		}
	}
}

// endedOnce tolerates that an end was not heard of: Redis forgets what it publishes when nobody listens. A submit whose answer
// was lost may have been repeated after the first had ended; that is a second life, with an end of its own.
func endedOnce(c *Case, f *Finding) {
	for _, s := range c.Submissions {
		f.Checked++
		switch n := c.Ends[s.ID]; {
		case n > 1+s.Doubtful:
			f.breach("%s (%s) ended %d times", s.ID, s.Order.Deed, n)
		case n != 1:
			f.Allowed++
		}
	}
}

func answered(c *Case, f *Finding) {
	for _, s := range c.Submissions {
		f.Checked++
		if n := c.Answers[s.ID]; n != 1 {
			f.breach("%s (%s) was yielded %d times by its subscription", s.ID, s.Order.Deed, n)
		}
	}
}

// effected wants a run that came to its end by itself. A task with a lock key may have joined another: then that one's counts.
func effected(c *Case, f *Finding) {
	done := map[string]bool{}
	for _, run := range c.Runs {
		if run.Done && run.Lock != "" {
			done[run.Lock] = true
		}
	}
	for _, s := range c.Submissions {
		r := c.Records[s.ID]
		if r == nil || r.State != task.Completed {
			continue
		}
		f.Checked++
		own := false
		for _, run := range c.runs[s.ID] {
			own = own || run.Done
		}
		switch {
		case own:
		case s.Order.Lock != "" && done[s.Order.Lock]:
			f.Allowed++
		default:
			f.breach("%s (%s) is completed and no run of it came to its end", s.ID, s.Order.Deed)
		}
	}
}

// innocent allows a kill for each strike of the harness at a process in which the task ran alone, or was about to.
func innocent(c *Case, f *Finding) {
	for _, s := range c.Submissions {
		r := c.Records[s.ID]
		if r == nil {
			continue
		}
		f.Checked++
		own := s.Order.Want.Kills
		if r.Counters.Kills <= own {
			continue
		}
		if r.Counters.Kills <= own+c.excuses(s.ID) {
			f.Allowed++
			continue
		}
		f.breach("%s (%s) is charged %d kills, of which %d are its own and %d may be the harness's: %s", s.ID, s.Order.Deed, r.Counters.Kills, own, c.excuses(s.ID), reason(r))
	}
}

// ownFailures allows failures beyond a task's own when it heeded the end of its time in a process that was frozen.
func ownFailures(c *Case, f *Finding) {
	for _, s := range c.Submissions {
		r := c.Records[s.ID]
		if r == nil {
			continue
		}
		f.Checked++
		switch extra := r.Counters.Failures - s.Order.Want.Failures; {
		case extra <= 0:
		case extra <= c.excuses(s.ID) && (r.Fault == nil || r.Fault.Kind == fault.Timeout):
			f.Allowed++
		default:
			f.breach("%s (%s) is charged %d failures, of which %d are its own: %s", s.ID, s.Order.Deed, r.Counters.Failures, s.Order.Want.Failures, reason(r))
		}
	}
}
