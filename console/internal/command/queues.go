package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func queuesCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "queues",
		Args:    "[NAME]",
		Summary: "the queues, or one of them in full",
		Help: `WAITING, DELAYED, RETRY and DEAD are counted in the broker, over all managers. HELD (taken, waiting for a worker),
RUNNING and WORKERS are this manager's. DONE, FAILED and KILLED count the runs since this manager's start. On a narrow
terminal what has no room stands below its row. One queue is shown with its run time and its wait (from when a task could
have been taken until a worker had it): of the runs of the last minute, at least the last 20 and at most the last 1024.`,
		Examples: []Example{
			{`drover queues`, "all queues"},
			{`drover queues feed-pull`, "one queue, every number with its meaning"},
		},
		Max:      1,
		Complete: completeQueue,
		Run:      runQueues,
	}
}

func runQueues(ctx context.Context, env *Env, args *Args) error {
	s, err := status(ctx, env)
	if err != nil {
		return err
	}
	queues := s.GetQueues()
	if len(args.Words) > 0 {
		q, err := pickQueue(ctx, env, queues, args.Words[0])
		if err != nil {
			return err
		}
		queues = []*apiv1.Queue{q}
	}
	switch {
	case env.JSON:
		return screen.WriteJSON(env.Out, map[string][]queueJSON{"queues": queueViews(queues)})
	case len(args.Words) > 0:
		return queueFields(queues[0]).Write(env.Out, env.style())
	default:
		return queueTable(queues).Write(env.Out, env.style())
	}
}

// pickQueue finds a queue by its name; the error is a *ExitError of usage.
func pickQueue(ctx context.Context, env *Env, queues []*apiv1.Queue, name string) (*apiv1.Queue, error) {
	for _, q := range queues {
		if q.GetName() == name {
			return q, nil
		}
	}
	return nil, unknownQueue(ctx, env, name, queueNames(queues))
}

func queueTable(queues []*apiv1.Queue) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "QUEUE", Flexible: true}, {Title: "STATE"},
		{Title: "WAITING", Right: true}, {Title: "DELAYED", Right: true, Spare: 3}, {Title: "RETRY", Right: true, Spare: 2},
		{Title: "DEAD", Right: true}, {Title: "HELD", Right: true, Spare: 1}, {Title: "RUNNING", Right: true},
		{Title: "WORKERS", Right: true}, {Title: "DONE", Right: true, Spare: 4}, {Title: "FAILED", Right: true, Spare: 5},
		{Title: "KILLED", Right: true, Spare: 6},
	}}
	for _, q := range queues {
		t.Add(screen.Text(q.GetName()), screen.Cell{Text: q.GetState(), Paint: queuePaint(q)},
			count(q.GetWaiting()), count(q.GetScheduled()), count(q.GetRetry()), screen.Cell{Text: screen.Count(q.GetDead()), Paint: badIfAny(q.GetDead())},
			count(q.GetHeld()), count(q.GetRunning()), screen.Text(workersOf(q)), total(q.GetCompleted()), total(q.GetFailed()), total(q.GetKilled()))
	}
	return t
}

func queueFields(q *apiv1.Queue) *screen.Fields {
	var f screen.Fields
	f.Add("Queue", q.GetName())
	f.Add("Plugin", q.GetPlugin())
	f.AddPainted("State", q.GetState(), queuePaint(q))
	f.AddPainted("Reason", q.GetReason(), queuePaint(q))
	f.Add("Waiting", screen.Count(q.GetWaiting()))
	f.Add("Delayed", screen.Count(q.GetScheduled())+" not due yet")
	f.Add("Retry", screen.Count(q.GetRetry())+" failed and will be tried again")
	f.AddPainted("Dead", screen.Count(q.GetDead())+" kept as dead letters", badIfAny(q.GetDead()))
	f.Add("Held", screen.Count(q.GetHeld())+" taken by this manager, waiting for a worker")
	f.Add("Running", screen.Count(q.GetRunning()))
	if n := q.GetLockWaiting(); n > 0 {
		f.Add("Lock", fmt.Sprintf("%d wait for a lock", n))
	}
	f.Add("Workers", fmt.Sprintf("%d of at most %d", q.GetWorkers(), q.GetMaxWorkers()))
	f.Add("Done", fmt.Sprintf("%d runs completed, %d failed, %d killed since this manager's start",
		q.GetCompleted(), q.GetFailed(), q.GetKilled()))
	f.Add("Run time", timesText(q.GetRunP50Us(), q.GetRunP99Us(), q.GetRunP99Us()))
	f.Add("Wait", timesText(q.GetWaitP50Us(), q.GetWaitP99Us(), q.GetRunP99Us()))
	f.Add("Ended", exitsText(q.GetExits()))
	f.Add("Priority", q.GetPriority())
	return &f
}

// timesText says how long half of the latest runs and all but the slowest took, in microseconds; empty when nothing ran, as longest
// run time tells.
func timesText(half, most, longestRun uint64) string {
	if longestRun == 0 {
		return ""
	}
	short := func(us uint64) string { return screen.Short(time.Duration(us) * time.Microsecond) } //nolint:gosec // of less than centuries
	return fmt.Sprintf("%s or less for half of the latest runs, %s for 99 of 100", short(half), short(most))
}

// exitsText says how many worker processes ended, for which reason; empty for none.
func exitsText(exits map[string]uint64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(exits)) {
		if n := exits[reason]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, reason))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "worker processes: " + strings.Join(parts, ", ")
}

func workersOf(q *apiv1.Queue) string { return fmt.Sprintf("%d/%d", q.GetWorkers(), q.GetMaxWorkers()) }

func count(n int64) screen.Cell { return screen.Text(screen.Count(n)) }

func total(n uint64) screen.Cell { return screen.Text(strconv.FormatUint(n, 10)) }

func queuePaint(q *apiv1.Queue) screen.Paint {
	switch q.GetState() {
	case "ok":
		return screen.Good
	case "paused":
		return screen.Warn
	default:
		return screen.Bad
	}
}

func badIfAny(n int64) screen.Paint {
	if n > 0 {
		return screen.Bad
	}
	return screen.Plain
}
