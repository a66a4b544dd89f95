package controller_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/controller"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

func limits() settings.Queue {
	return settings.Queue{MaxFailures: 5, MaxKills: 3, RetryBackoff: time.Second, RetryBackoffMax: time.Minute, Retention: time.Hour}
}

func jobWith(c task.Counters) *job.Job {
	j := job.New(task.ID{Queue: "q", Key: "k"}, "kind", nil)
	j.Counters = c
	return j
}

// Every end of a run, with counters below, at and above the limits, has the one verdict that the design gives it.
func TestJudge(t *testing.T) {
	t.Parallel()
	fail, permanent := fault.New(fault.Failed, "no"), fault.New(fault.Failed, "never").AsPermanent()
	n := func(failures, kills int) task.Counters {
		return task.Counters{Failures: failures, Kills: kills, Interruptions: 50, Losses: 50}
	}
	for name, c := range map[string]struct {
		end     job.End
		fault   *fault.Fault
		ran     bool // it had begun; it matters to few
		suspect bool // the outcome's
		was     bool // the job's
		before  task.Counters
		move    job.Move
		state   task.State
		after   task.Counters
		is      bool
	}{
		"success":                         {end: job.Succeeded, before: n(4, 2), move: job.Finish, state: task.Completed, after: n(4, 2)},
		"success of a suspect":            {end: job.Succeeded, was: true, before: n(0, 0), move: job.Finish, state: task.Completed, after: n(0, 0)},
		"cancel":                          {end: job.Cancelled, before: n(4, 2), move: job.Finish, state: task.Cancelled, after: n(4, 2)},
		"deadline passed":                 {end: job.Expired, fault: fail, before: n(4, 2), move: job.Bury, state: task.Expired, after: n(4, 2)},
		"deadline passed in a run":        {end: job.Expired, ran: true, fault: fail, before: n(4, 2), move: job.Bury, state: task.Expired, after: task.Counters{Failures: 4, Kills: 2, Interruptions: 51, Losses: 50}},
		"return":                          {end: job.Returned, before: n(4, 2), move: job.GiveBack, state: task.Waiting, after: n(4, 2)},
		"return of a suspect":             {end: job.Returned, was: true, before: n(0, 0), move: job.GiveBack, state: task.Waiting, after: n(0, 0), is: true},
		"interruption":                    {end: job.Interrupted, before: n(4, 2), move: job.GiveBack, state: task.Waiting, after: task.Counters{Failures: 4, Kills: 2, Interruptions: 51, Losses: 50}},
		"interruption of a suspect":       {end: job.Interrupted, was: true, before: task.Counters{}, move: job.GiveBack, state: task.Waiting, after: task.Counters{Interruptions: 1}, is: true},
		"first failure":                   {end: job.Faulted, fault: fail, before: n(0, 0), move: job.Retry, state: task.Failed, after: n(1, 0)},
		"failure of a suspect":            {end: job.Faulted, fault: fail, was: true, before: n(0, 0), move: job.Retry, state: task.Failed, after: n(1, 0)},
		"last but one failure":            {end: job.Faulted, fault: fail, before: n(3, 0), move: job.Retry, state: task.Failed, after: n(4, 0)},
		"last failure":                    {end: job.Faulted, fault: fail, before: n(4, 0), move: job.Bury, state: task.Dead, after: n(5, 0)},
		"last failure by kills":           {end: job.Faulted, fault: fail, before: n(2, 2), move: job.Bury, state: task.Dead, after: n(3, 2)},
		"failure above the limit":         {end: job.Faulted, fault: fail, before: n(90, 0), move: job.Bury, state: task.Dead, after: n(91, 0)},
		"permanent failure":               {end: job.Faulted, fault: permanent, before: n(0, 0), move: job.Bury, state: task.Dead, after: n(1, 0)},
		"failure without a fault":         {end: job.Faulted, before: n(0, 0), move: job.Retry, state: task.Failed, after: n(1, 0)},
		"first kill":                      {end: job.Killed, fault: fail, before: n(0, 0), move: job.GiveBack, state: task.Waiting, after: n(0, 1), is: true},
		"last kill":                       {end: job.Killed, fault: fail, before: n(0, 2), move: job.Bury, state: task.Quarantined, after: n(0, 3)},
		"kill of a suspect":               {end: job.Killed, fault: fail, was: true, before: n(0, 0), move: job.GiveBack, state: task.Waiting, after: n(0, 1), is: true},
		"kill that spends the failures":   {end: job.Killed, fault: fail, before: n(4, 0), move: job.Bury, state: task.Dead, after: n(4, 1)},
		"kill that spends both":           {end: job.Killed, fault: fail, before: n(2, 2), move: job.Bury, state: task.Quarantined, after: n(2, 3)},
		"kill with others":                {end: job.Killed, fault: fail, suspect: true, before: task.Counters{Failures: 4, Kills: 2}, move: job.GiveBack, state: task.Waiting, after: task.Counters{Failures: 4, Kills: 2, Interruptions: 1}, is: true},
		"kill with others of a suspect":   {end: job.Killed, fault: fail, suspect: true, was: true, before: task.Counters{}, move: job.GiveBack, state: task.Waiting, after: task.Counters{Interruptions: 1}, is: true},
		"an end that nobody has heard of": {end: 99, before: n(0, 0), move: job.Retry, state: task.Failed, after: n(1, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := jobWith(c.before)
			j.Suspect = c.was
			o := job.Outcome{End: c.end, Fault: c.fault, Suspect: c.suspect, Ended: time.Now()}
			if c.ran {
				o.Started = o.Ended.Add(-time.Second)
			}
			v := controller.Judge(j, o, limits(), 0)
			if v.Move != c.move || v.State != c.state || v.Counters != c.after || v.Suspect != c.is {
				t.Errorf("the verdict is %+v", v)
			}
			if (c.fault != nil) != (v.Reason != "") {
				t.Errorf("the reason is %q", v.Reason)
			}
			if v.RetryAt.IsZero() == (v.Move == job.Retry) {
				t.Errorf("it is due at %s", v.RetryAt)
			}
		})
	}
}

// Whatever the outcome, counters and limits: counters never shrink, only failures and kills spend the limit, a task that
// goes on is within it, one that is buried has a reason in the counters, and every move is a legal one of the states.
func TestJudgeProperties(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a test's choices
	for range 20_000 {
		q := settings.Queue{MaxFailures: 1 + random.IntN(6), MaxKills: 1 + random.IntN(6), RetryBackoff: time.Duration(random.Int64N(1e12)), RetryBackoffMax: time.Duration(random.Int64N(1e15))}
		j := jobWith(task.Counters{Failures: random.IntN(8), Kills: random.IntN(8), Interruptions: random.IntN(1000), Losses: random.IntN(1000)})
		j.Suspect = random.IntN(2) == 0
		o := job.Outcome{End: job.End(1 + random.IntN(6)), Ended: time.Now(), Suspect: random.IntN(4) == 0}
		if o.End == job.Faulted || o.End == job.Killed {
			o.Fault = fault.New(fault.Failed, "no")
			o.Fault.Permanent = random.IntN(3) == 0
		}
		v := controller.Judge(j, o, q, random.Float64())
		a, b := j.Counters, v.Counters
		if b.Failures < a.Failures || b.Kills < a.Kills || b.Interruptions < a.Interruptions || b.Losses != a.Losses {
			t.Fatalf("counters shrank: %+v to %+v", a, b)
		}
		spent := b.Failures + b.Kills - a.Failures - a.Kills
		if want := o.End == job.Faulted || o.End == job.Killed && !o.Suspect; (spent == 1) != want || spent > 1 {
			t.Fatalf("end %v spent %d", o.End, spent)
		}
		switch v.Move {
		case job.Retry, job.GiveBack:
			if spent == 1 && (b.Failures+b.Kills >= q.MaxFailures || o.End == job.Killed && b.Kills >= q.MaxKills) {
				t.Fatalf("%+v goes on within %+v", b, q)
			}
		case job.Bury:
			if o.End == job.Expired {
				break
			}
			if spent == 0 || b.Failures+b.Kills < q.MaxFailures && b.Kills < q.MaxKills && !o.Fault.Permanent {
				t.Fatalf("%+v is buried within %+v by %+v", b, q, o)
			}
		default:
			if o.End != job.Succeeded && o.End != job.Cancelled {
				t.Fatalf("end %v is finished", o.End)
			}
		}
		if from := task.Running; !from.CanBecome(v.State) {
			t.Fatalf("%s cannot become %s", task.Running, v.State)
		}
	}
}

// A failed task waits for retry_backoff doubled with each failure up to retry_backoff_max, or for what its worker asked
// for, 0 included, and up to a quarter more; whatever the numbers are, the pause neither overflows nor is negative.
func TestPause(t *testing.T) {
	t.Parallel()
	after := func(d time.Duration) *fault.Fault { return fault.New(fault.Failed, "no").WithRetryAfter(d) }
	const year = 365 * 24 * time.Hour
	plain := fault.New(fault.Failed, "no")
	for name, c := range map[string]struct {
		fault        *fault.Fault
		failures     int // before this one
		backoff, max time.Duration
		want         time.Duration
	}{
		"first":                       {plain, 0, time.Second, time.Minute, time.Second},
		"second":                      {plain, 1, time.Second, time.Minute, 2 * time.Second},
		"sixth":                       {plain, 5, time.Second, time.Minute, 32 * time.Second},
		"capped":                      {plain, 6, time.Second, time.Minute, time.Minute},
		"capped for ever":             {plain, math.MaxInt32, time.Second, time.Minute, time.Minute},
		"no growth":                   {plain, 9, time.Minute, time.Second, time.Minute},
		"none":                        {plain, 9, 0, time.Minute, 0},
		"the longest":                 {plain, 200, time.Second, math.MaxInt64, year},
		"asked for nothing":           {after(0), 7, time.Second, time.Minute, 0},
		"asked for more than the cap": {after(time.Hour), 7, time.Second, time.Minute, time.Hour},
		"asked for the impossible":    {after(math.MaxInt64), 0, time.Second, time.Minute, year},
		"asked for the past":          {after(-time.Hour), 0, time.Second, time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := limits()
			q.MaxFailures, q.RetryBackoff, q.RetryBackoffMax = math.MaxInt, c.backoff, c.max
			ended := time.Now()
			for _, jitter := range []float64{0, 0.5, 0.999} {
				v := controller.Judge(jobWith(task.Counters{Failures: c.failures}), job.Outcome{End: job.Faulted, Fault: c.fault, Ended: ended}, q, jitter)
				got, most := v.RetryAt.Sub(ended), c.want+c.want/4
				if got < c.want || got > most || jitter == 0 && got != c.want || jitter > 0 && c.want > 0 && got == c.want {
					t.Errorf("with jitter %v it waits %s, want %s to %s", jitter, got, c.want, most)
				}
			}
		})
	}
}
