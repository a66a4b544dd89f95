package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	defaultTasks = 20      // listed when no number is asked for
	mostTasks    = 100_000 // that may be asked for
	pageOfTasks  = 1000    // in one answer of the manager
)

func tasksCommand() *Command {
	return &Command{
		Section: SectionTasks,
		Name:    "tasks",
		Args:    "QUEUE",
		Summary: "the tasks of a queue that wait, run, failed or are dead",
		Help: `Without --state it lists running, waiting, failed and dead tasks, each up to the limit: the next to run or the
latest to end first. "failed" will be tried again. The dead letters, which --state dead lists all, are not: "dead" (failed
too often, or for good), "quarantined" (killed its worker too often) and "expired" (did not begin in time). Completed tasks
are not listed; task shows one. With --json each task is an object on a line of its own.`,
		Examples: []Example{
			{`drover tasks feed-pull`, "what lies in the queue"},
			{`drover tasks feed-pull --state dead --limit 100`, "the dead letters"},
			{`drover tasks feed-pull --state dead --reason timeout`, "those that ran out of time"},
			{`drover tasks feed-pull --newer 1h --match refused`, "the dead letters of the last hour with that in their error"},
		},
		Flags: append([]Flag{
			{Name: "state", Value: "STATE", Help: "only these: " + strings.Join(stateNames(listable()), ", "),
				Complete: func(context.Context, *Env) []string { return stateNames(listable()) }},
			{Name: "limit", Value: "N", Help: fmt.Sprintf("at most N of a state; %d unless told", defaultTasks)},
			{Name: "payload", Help: "with their payloads"},
		}, filterFlags("dead letters: ")...),
		Min: 1, Max: 1,
		Complete: completeQueue,
		Run:      runTasks,
	}
}

// listing is one state of a queue, listed.
type listing struct {
	state task.State
	tasks []*task.Task
	total int64 // below 0 when it is not known
	more  bool  // there are more than were asked for
}

func runTasks(ctx context.Context, env *Env, args *Args) error {
	queue := args.Words[0]
	limit, err := args.Number("limit", mostTasks)
	if err != nil {
		return err
	}
	if limit == 0 {
		limit = defaultTasks
	}
	filter, err := filterOf(env, args)
	if err != nil {
		return err
	}
	states, err := statesToList(args, filter != nil)
	if err != nil {
		return err
	}
	var lists []listing
	for _, state := range states {
		l, err := list(ctx, env, &apiv1.ListTasksRequest{Queue: queue, State: taskv1.State(state), Filter: filter, WithPayload: args.Has("payload")}, limit)
		if err != nil {
			return aboutQueue(ctx, env, queue, err)
		}
		lists = append(lists, l)
	}
	return showListings(env, queue, lists, args.Has("payload"))
}

// statesToList are the state asked for, or those that say most.
func statesToList(args *Args, filtered bool) ([]task.State, error) {
	name := args.Text("state")
	if name == "" {
		if filtered {
			return []task.State{task.Dead}, nil
		}
		return []task.State{task.Running, task.Waiting, task.Failed, task.Dead}, nil // dead letters of every kind are among the dead
	}
	for _, s := range listable() {
		if s.String() == name {
			return []task.State{s}, nil
		}
	}
	return nil, usageError("--state: tasks that are %.40q cannot be listed%s (use one of %s)",
		name, didYouMean(name, stateNames(listable())), strings.Join(stateNames(listable()), ", "))
}

// list asks for a state's tasks, page by page.
func list(ctx context.Context, env *Env, request *apiv1.ListTasksRequest, limit int) (listing, error) {
	l := listing{state: task.State(request.GetState()), total: -1}
	for {
		request.Limit = int32(min(pageOfTasks, limit-len(l.tasks))) //nolint:gosec // at most a page
		page, err := ask(ctx, "list the tasks", env.Control.ListTasks, request)
		if err != nil {
			return l, err
		}
		if request.GetPageToken() == "" {
			l.total = page.GetTotal() // later pages do not say
		}
		for _, p := range page.GetTasks() {
			t, err := task.FromProto(p)
			if err != nil {
				continue // what another program wrote into the queue is no task of ours; total counts it
			}
			env.Seen.add(t.ID)
			l.tasks = append(l.tasks, t)
		}
		request.PageToken = page.GetNextPageToken()
		l.more = request.GetPageToken() != ""
		if !l.more || len(l.tasks) >= limit || ctx.Err() != nil {
			return l, ctx.Err()
		}
	}
}

func showListings(env *Env, queue string, lists []listing, payloads bool) error {
	table := &screen.Table{Columns: []screen.Column{
		{Title: "TASK", Flexible: true}, {Title: "STATE"}, {Title: "RUNS", Right: true, Spare: 2}, {Title: "WHEN", Spare: 1},
		{Title: "LAST ERROR", Flexible: true, Spare: 3},
	}}
	if payloads {
		table.Columns = append(table.Columns, screen.Column{Title: "PAYLOAD", Flexible: true})
	}
	shown := 0
	var more []string
	for _, l := range lists {
		for _, t := range l.tasks {
			shown++
			if env.JSON {
				if err := screen.WriteJSON(env.Out, t); err != nil {
					return err
				}
				continue
			}
			cells := []screen.Cell{screen.Text(t.ID.String()), {Text: t.State.String(), Paint: paintOf(t.State)}, screen.Text(fmt.Sprint(t.Attempts)),
				screen.Text(whenText(env, t)), screen.Text(lastError(t))}
			if payloads {
				cells = append(cells, screen.Text(string(t.Payload)))
			}
			table.Add(cells...)
		}
		switch rest := l.total - int64(len(l.tasks)); {
		case !l.more:
		case rest > 0:
			more = append(more, fmt.Sprintf("%d more %s", rest, l.state))
		default:
			more = append(more, fmt.Sprintf("more %s", l.state))
		}
	}
	if env.JSON {
		return nil
	}
	if shown == 0 {
		_, err := fmt.Fprintf(env.Out, "No such task in %s.\n", screen.Clean(queue))
		return err
	}
	if err := table.Write(env.Out, env.style()); err != nil || len(more) == 0 {
		return err
	}
	return env.tell(fmt.Sprintf("There are %s: --limit N shows more.", strings.Join(more, ", ")))
}

// whenText is the moment that matters in a task's state.
func whenText(env *Env, t *task.Task) string {
	ago := func(at time.Time, what string) string {
		if at.IsZero() {
			return ""
		}
		return what + screen.Duration(env.Now().Sub(at)) + " ago"
	}
	switch {
	case t.State.Ended():
		return ago(t.Ended, "")
	case t.State == task.Running && !t.Started.IsZero():
		return "for " + screen.Duration(env.Now().Sub(t.Started))
	case !t.RunAt.IsZero():
		return "due " + inTime(env, t)
	default:
		return ago(t.Submitted, "sent ")
	}
}

// lastError is what went wrong last; empty when nothing did.
func lastError(t *task.Task) string {
	if t.Fault != nil {
		return t.Fault.Error()
	}
	runs := slices.DeleteFunc(slices.Clone(t.History), func(a task.Attempt) bool { return a.End == task.EndRetried })
	if len(runs) == 0 {
		return ""
	}
	last := runs[len(runs)-1]
	return (&fault.Fault{Kind: last.Fault, Message: last.Message}).Error()
}
