package judge_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/actor"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/judge"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/ledger"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// second is one in the ledger's time.
const second = int64(time.Second)

// Tasks of the sound run, by their number.
const (
	good = iota
	poison
	failing
	holder // with a lock
	next   // with the same lock, later
	joined // with the same lock, and without a run of its own
	tasks
)

func id(n int) task.ID { return task.ID{Queue: "q", Key: "t" + strconv.Itoa(n)} }

// sound returns facts with which nothing is wrong.
func sound() *judge.Facts {
	f := &judge.Facts{
		Records: map[task.ID]*task.Task{}, Ends: map[task.ID]int{}, Answers: map[task.ID]int{},
		Bounds: judge.Bounds{Stop: 4 * time.Second},
		Stops:  []actor.Stop{{Manager: "m1", From: 100 * second, To: 101 * second, InHand: 3, Finished: 1, Returned: 1}},
		Numbers: map[string]judge.Numbers{"q": {
			Archived: 2, Records: tasks, Processed: 4 + 1 + plan.MaxFailures, Failed: 1 + plan.MaxFailures,
		}},
		Orphans: []actor.Orphans{{Manager: "m1"}},
	}
	for n := range tasks {
		want, lock := plan.Want{State: task.Completed, Result: true}, ""
		record := &task.Task{ID: id(n), State: task.Completed, Attempts: 1, Result: json.RawMessage(strconv.Itoa(n))}
		switch n {
		case poison:
			want = plan.Want{State: task.Quarantined, Kills: plan.MaxKills}
			record.State, record.Attempts, record.Result = task.Quarantined, plan.MaxKills, nil
			record.Counters.Kills, record.Fault = plan.MaxKills, fault.New(fault.Crash, "")
		case failing:
			want = plan.Want{State: task.Dead, Failures: plan.MaxFailures}
			record.State, record.Attempts, record.Result = task.Dead, plan.MaxFailures, nil
			record.Counters.Failures, record.Fault = plan.MaxFailures, fault.New(fault.Failed, "")
		case holder, next, joined:
			lock = "key"
		}
		f.Submissions = append(f.Submissions, judge.Submission{ID: id(n), Order: plan.Order{Number: n, Queue: "q", Deed: "deed", Want: want, Lock: lock}})
		f.Records[id(n)], f.Ends[id(n)], f.Answers[id(n)] = record, 1, 1
		if n == joined {
			continue
		}
		for attempt := 1; attempt <= record.Attempts; attempt++ {
			begin := int64(10*n+attempt) * second
			f.Runs = append(f.Runs, ledger.Run{
				ID: id(n), Attempt: attempt, PID: 1000 + 10*n + attempt, Manager: 1, Lock: lock, Begin: begin, Last: begin + second/2,
				Ended: n != poison, Done: n != poison && n != failing,
			})
		}
	}
	return f
}

// broken returns the names of the invariants that are.
func broken(f *judge.Facts) []string {
	var names []string
	for _, finding := range judge.Judge(f) {
		if len(finding.Broken) > 0 {
			names = append(names, finding.Name)
		}
	}
	return names
}

// A run without a flaw is found without one, and every invariant has looked at something.
func TestSound(t *testing.T) {
	t.Parallel()
	for _, finding := range judge.Judge(sound()) {
		if finding.Checked == 0 || len(finding.Broken) > 0 {
			t.Errorf("%+v", finding)
		}
	}
}

// run returns the run of a task.
func run(f *judge.Facts, n int) *ledger.Run {
	i := slices.IndexFunc(f.Runs, func(r ledger.Run) bool { return r.ID == id(n) })
	return &f.Runs[i]
}

func without(f *judge.Facts, n int) {
	f.Runs = slices.DeleteFunc(f.Runs, func(r ledger.Run) bool { return r.ID == id(n) })
}

// Names of invariants, shortened where they are used often.
const (
	ends     = "every end is the one that was ordered"
	records  = "every task has ended, with one record"
	effects  = "every completed task had its effect"
	locks    = "no two runs of one lock key at once"
	innocent = "no kill is charged to the innocent"
	failures = "no failure is charged that no worker reported"
	numbers  = "the numbers of Redis agree"
	left     = "nothing is left at the end"
	queues   = "nothing is left in the queues"
	reports  = "every report of a stop is true"
	crashes  = "nothing crashed by itself"
)

// Each way of breaking a promise is found, and it alone.
func TestBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(f *judge.Facts)
		want  []string
	}{
		"a lost task":        {func(f *judge.Facts) { delete(f.Records, id(good)) }, []string{records, numbers}},
		"a task that waits":  {func(f *judge.Facts) { f.Records[id(good)].State = task.Waiting }, []string{records, ends, numbers}},
		"a wrong end":        {func(f *judge.Facts) { f.Records[id(poison)].State = task.Dead }, []string{ends}},
		"a wrong result":     {func(f *judge.Facts) { f.Records[id(good)].Result = json.RawMessage("77") }, []string{"every result is the task's own"}},
		"an end twice":       {func(f *judge.Facts) { f.Ends[id(good)] = 2 }, []string{"no task ended twice"}},
		"a wait for ever":    {func(f *judge.Facts) { delete(f.Answers, id(good)) }, []string{"every wait was answered, once"}},
		"a wait twice":       {func(f *judge.Facts) { f.Answers[id(good)] = 2 }, []string{"every wait was answered, once"}},
		"no effect":          {func(f *judge.Facts) { without(f, good) }, []string{effects}},
		"half an effect":     {func(f *judge.Facts) { run(f, good).Done = false }, []string{effects}},
		"nobody to join":     {func(f *judge.Facts) { without(f, holder); without(f, next) }, []string{effects}},
		"two holders":        {func(f *judge.Facts) { run(f, holder).Last = run(f, next).Begin + 1 }, []string{locks}},
		"a kill":             {func(f *judge.Facts) { f.Records[id(good)].Counters.Kills = 1 }, []string{innocent}},
		"one kill too many":  {func(f *judge.Facts) { f.Records[id(poison)].Counters.Kills++ }, []string{innocent}},
		"a failure":          {func(f *judge.Facts) { f.Records[id(joined)].Counters.Failures = 1 }, []string{failures, numbers}},
		"an orphan":          {func(f *judge.Facts) { f.Orphans[0].Left = []actor.Found{{PID: 7}} }, []string{"no process outlives its manager"}},
		"a process":          {func(f *judge.Facts) { f.Processes = []actor.Found{{PID: 7}} }, []string{left}},
		"a socket":           {func(f *judge.Facts) { f.Dirs = []string{"/x"} }, []string{left}},
		"a lock":             {func(f *judge.Facts) { f.Locks = []string{"key"} }, []string{left}},
		"pending":            {func(f *judge.Facts) { number(f, func(n *judge.Numbers) { n.Pending = 1 }) }, []string{queues}},
		"active":             {func(f *judge.Facts) { number(f, func(n *judge.Numbers) { n.Active = 1 }) }, []string{queues}},
		"a lease":            {func(f *judge.Facts) { number(f, func(n *judge.Numbers) { n.Lease = 1 }) }, []string{queues}},
		"scheduled":          {func(f *judge.Facts) { number(f, func(n *judge.Numbers) { n.Scheduled = 1 }) }, []string{queues}},
		"to be retried":      {func(f *judge.Facts) { number(f, func(n *judge.Numbers) { n.Retry = 1 }) }, []string{queues}},
		"a record too many":  {func(f *judge.Facts) { number(f, func(n *judge.Numbers) { n.Records++ }) }, []string{numbers}},
		"a lost dead letter": {func(f *judge.Facts) { number(f, func(n *judge.Numbers) { n.Archived-- }) }, []string{numbers}},
		"miscounted":         {func(f *judge.Facts) { number(f, func(n *judge.Numbers) { n.Processed++ }) }, []string{numbers}},
		"failures uncounted": {func(f *judge.Facts) { number(f, func(n *judge.Numbers) { n.Failed-- }) }, []string{numbers}},
		"a slow stop":        {func(f *judge.Facts) { f.Stops[0].To += 4 * second }, []string{"every stop is in time"}},
		"a stop that hangs":  {func(f *judge.Facts) { f.Stops[0].Hung = true }, []string{"every stop is in time"}},
		"no report":          {func(f *judge.Facts) { f.Stops[0].Finished = -1 }, []string{reports}},
		"a false exit code":  {func(f *judge.Facts) { f.Stops[0].Left = 1 }, []string{reports}},
		"left for no reason": {func(f *judge.Facts) { f.Stops[0].Left, f.Stops[0].Code = 1, 1 }, []string{reports}},
		"a worker stays":     {func(f *judge.Facts) { f.Stops[0].Processes = []actor.Found{{PID: 7}} }, []string{reports}},
		"its sockets stay":   {func(f *judge.Facts) { f.Stops[0].Dirs = []string{"/x"} }, []string{reports}},
		"a crash":            {func(f *judge.Facts) { f.Crashes = []string{"m1"} }, []string{crashes}},
		"a problem":          {func(f *judge.Facts) { f.Problems = []string{"m1"} }, []string{crashes}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := sound()
			c.spoil(f)
			if got := broken(f); !slices.Equal(got, c.want) {
				t.Errorf("broken are %q, want %q", got, c.want)
			}
		})
	}
}

func number(f *judge.Facts, change func(*judge.Numbers)) {
	n := f.Numbers["q"]
	change(&n)
	f.Numbers["q"] = n
}

// What a fault excuses is excused, and no more than that.
func TestExcused(t *testing.T) {
	t.Parallel()
	strike := func(f *judge.Facts, n int, times int) {
		for i := range times {
			again := *run(f, n)
			again.PID, again.Attempt, again.Ended, again.Done = 5000+i, 100+i, false, false
			f.Runs = append(f.Runs, again)
			f.Injuries = append(f.Injuries, actor.Injury{PID: again.PID, From: again.Last, To: again.Last})
		}
	}
	for name, c := range map[string]struct {
		spoil func(f *judge.Facts)
		want  []string
	}{
		"a kill of ours":         {func(f *judge.Facts) { strike(f, good, 1); f.Records[id(good)].Counters.Kills = 1 }, nil},
		"two kills, one of ours": {func(f *judge.Facts) { strike(f, good, 1); f.Records[id(good)].Counters.Kills = 2 }, []string{innocent}},
		"quarantine by us": {func(f *judge.Facts) {
			strike(f, good, plan.MaxKills)
			r := f.Records[id(good)]
			r.State, r.Counters.Kills, r.Attempts = task.Quarantined, plan.MaxKills, plan.MaxKills
			number(f, func(n *judge.Numbers) { n.Archived++; n.Failed++ })
		}, nil},
		"a strike at another process": {func(f *judge.Facts) {
			f.Injuries = []actor.Injury{{PID: 1, From: 0, To: 0}}
			f.Records[id(good)].Counters.Kills = 1
		}, []string{innocent}},
		"a strike long after": {func(f *judge.Facts) {
			r := run(f, good)
			f.Injuries = []actor.Injury{{PID: r.PID, From: r.Last + 10*second, To: r.Last + 10*second}}
			f.Records[id(good)].Counters.Kills = 1
		}, []string{innocent}},
		"left while Redis was away": {func(f *judge.Facts) {
			f.Stops[0].Left, f.Stops[0].Code = 1, 1
			f.Outages = []judge.Freeze{{From: f.Stops[0].From - second, To: f.Stops[0].To}}
		}, nil},
		"a second life":       {func(f *judge.Facts) { f.Submissions[good].Doubtful = 1; f.Ends[id(good)] = 2 }, nil},
		"an end not heard of": {func(f *judge.Facts) { delete(f.Ends, id(good)) }, nil},
		"two holders, the manager frozen": {func(f *judge.Facts) {
			r := run(f, holder)
			r.Last = run(f, next).Begin + 1
			f.Freezes = []judge.Freeze{{PID: r.Manager, From: r.Begin, To: r.Last}}
		}, nil},
		"two holders, the worker frozen": {func(f *judge.Facts) {
			r := run(f, holder)
			r.Last = run(f, next).Begin + 1
			f.Injuries = []actor.Injury{{PID: r.PID, From: r.Begin, To: r.Last}}
		}, nil},
		"two holders, another manager frozen": {func(f *judge.Facts) {
			r := run(f, holder)
			r.Last = run(f, next).Begin + 1
			f.Freezes = []judge.Freeze{{PID: r.Manager + 1, From: r.Begin, To: r.Last}}
		}, []string{locks}},
		"two holders, frozen long before": {func(f *judge.Facts) {
			r := run(f, holder)
			r.Last = run(f, next).Begin + 1
			f.Freezes = []judge.Freeze{{PID: r.Manager, From: r.Begin - 20*second, To: r.Begin - 10*second}}
		}, []string{locks}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := sound()
			c.spoil(f)
			if got := broken(f); !slices.Equal(got, c.want) {
				t.Errorf("broken are %q, want %q", got, c.want)
			}
		})
	}
}
