package command

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func workersCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "workers",
		Args:    "[QUEUE]",
		Summary: "the worker processes",
		Help: `TASKS counts what a process has been given, BUSY what it runs now, of how many at once. MEMORY is the resident
memory of the process and its children, of the memory_max that holds for it.`,
		Examples: []Example{
			{`drover workers`, "all processes"},
			{`drover workers feed-pull`, "those of one queue"},
		},
		Max:      1,
		Complete: completeQueue,
		Run:      runWorkers,
	}
}

func runWorkers(ctx context.Context, env *Env, args *Args) error {
	s, err := status(ctx, env)
	if err != nil {
		return err
	}
	workers := s.GetWorkers()
	if len(args.Words) > 0 {
		name := args.Words[0]
		if _, err := pickQueue(ctx, env, s.GetQueues(), name); err != nil {
			return err
		}
		workers = slices.DeleteFunc(slices.Clone(workers), func(w *apiv1.Worker) bool { return w.GetQueue() != name })
	}
	if env.JSON {
		return screen.WriteJSON(env.Out, map[string][]workerJSON{"workers": workerViews(workers)})
	}
	if len(workers) == 0 {
		_, err := fmt.Fprintln(env.Out, "No worker process is running; they start when there is work.")
		return err
	}
	return workerTable(env, workers).Write(env.Out, env.style())
}

func workerTable(env *Env, workers []*apiv1.Worker) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "WORKER", Right: true}, {Title: "QUEUE", Flexible: true}, {Title: "PID", Right: true}, {Title: "STATE", Flexible: true},
		{Title: "AGE", Right: true, Spare: 1}, {Title: "TASKS", Right: true, Spare: 2}, {Title: "BUSY", Right: true}, {Title: "MEMORY", Right: true},
	}}
	for _, w := range workers {
		t.Add(screen.Text(strconv.FormatUint(w.GetId(), 10)), screen.Text(w.GetQueue()), screen.Text(strconv.Itoa(int(w.GetPid()))),
			workerState(w), screen.Text(age(env, w.GetStartedMs())), total(w.GetTasks()),
			screen.Text(fmt.Sprintf("%d/%d", w.GetRunning(), w.GetSlots())), screen.Text(memoryText(w)))
	}
	return t
}

// workerState is a worker's state, and why it leaves.
func workerState(w *apiv1.Worker) screen.Cell {
	switch {
	case w.GetFrozen():
		return screen.Cell{Text: "frozen", Paint: screen.Bad}
	case w.GetLeaving() != "":
		return screen.Cell{Text: w.GetState() + ", leaves: " + w.GetLeaving(), Paint: screen.Warn}
	default:
		return screen.Text(w.GetState())
	}
}

// memoryText is a worker's memory, and its limit when it has one.
func memoryText(w *apiv1.Worker) string {
	if w.GetMemoryMaxBytes() == 0 {
		return screen.Bytes(w.GetRssBytes())
	}
	return screen.Bytes(w.GetRssBytes()) + " of " + screen.Bytes(w.GetMemoryMaxBytes())
}
