package controller

import (
	"math/rand/v2"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// judge returns what becomes of a job. It is a pure function; jitter is a random number in [0, 1).
//
// Only failures, panics among them, and kills spend max_failures; kills alone lead to quarantine at max_kills; interruptions and returns cost
// nothing, and neither does the death of a process that ran others too: that makes a suspect, which stays one until its
// next run has shown whose fault it was. A killed task goes back to the head at once, a failed one after its pause. One that is
// known to have killed its process runs alone as well, so that it takes no others down with it.
func judge(j *job.Job, o job.Outcome, q settings.Queue, jitter float64) job.Verdict {
	v := job.Verdict{Counters: j.Counters, History: j.History}
	if o.Fault != nil {
		v.Reason = o.Fault.Error()
	}
	switch o.End {
	case job.Succeeded:
		v.Move, v.State = job.Finish, task.Completed
	case job.Cancelled:
		v.Move, v.State = job.Finish, task.Cancelled
	case job.Expired:
		v.Move, v.State = job.Bury, task.Expired // what was asked for can still be seen, and tried again
		if !o.Started.IsZero() {
			v.Counters.Interruptions++ // a run was begun, and nobody is charged for its end
		}
	case job.Returned:
		v.Move, v.State, v.Suspect = job.GiveBack, task.Waiting, j.Suspect
		if o.Fault != nil && o.Fault.RetryAfter != nil {
			v.Move, v.RetryAt = job.Defer, o.Ended.Add(pause(o.Fault, 0, q, jitter))
		}
	case job.Interrupted:
		v.Counters.Interruptions++
		v.Move, v.State, v.Suspect = job.GiveBack, task.Waiting, j.Suspect
	case job.Killed:
		if o.Suspect {
			v.Counters.Interruptions++ // a run was begun, and nobody is charged for its end
			v.Move, v.State, v.Suspect = job.GiveBack, task.Waiting, true
			break
		}
		v.Counters.Kills++
		switch {
		case v.Counters.Kills >= q.MaxKills:
			v.Move, v.State = job.Bury, task.Quarantined
		case v.Counters.Failures+v.Counters.Kills >= q.MaxFailures:
			v.Move, v.State = job.Bury, task.Dead
		default:
			v.Move, v.State, v.Suspect = job.GiveBack, task.Waiting, true // it would take others down with it
		}
	default:
		v.Counters.Failures++
		switch {
		case o.Fault != nil && o.Fault.Permanent, v.Counters.Failures+v.Counters.Kills >= q.MaxFailures:
			v.Move, v.State = job.Bury, task.Dead
		default:
			v.Move, v.State = job.Retry, task.Failed
			v.RetryAt = o.Ended.Add(pause(o.Fault, v.Counters.Failures, q, jitter))
		}
	}
	return v
}

// longestPause bounds the pause of a failed task, whoever asked for it.
const longestPause = 365 * 24 * time.Hour

// pause is how long a failed task waits: what its worker asked for, or retry_backoff doubled with each failure up to
// retry_backoff_max. In both cases up to a quarter is added at random, so that what failed together does not come back together.
func pause(f *fault.Fault, failures int, q settings.Queue, jitter float64) time.Duration {
	const spread = 0.25
	var d time.Duration
	switch {
	case f != nil && f.RetryAfter != nil:
		d = *f.RetryAfter
	default:
		most := max(q.RetryBackoff, q.RetryBackoffMax)
		d = q.RetryBackoff
		for n := 1; n < failures && d > 0 && d < min(most, longestPause); n++ {
			d *= 2
		}
		d = min(d, most)
	}
	d = max(0, min(d, longestPause))
	return d + time.Duration(float64(d)*spread*jitter)
}

func randomJitter() float64 { return rand.Float64() } //nolint:gosec // spreads load, hides nothing
