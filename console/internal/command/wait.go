package command

import (
	"context"

	"github.com/drover-jobs/drover/protocol/task"
)

func waitCommand() *Command {
	return &Command{
		Section: SectionTasks,
		Name:    "wait",
		Args:    "ID...",
		Summary: "wait for tasks and print the end of each as it comes",
		Help: `A task that failed and will be tried again has not ended. With one ID the end is shown in full, with several each is a
line; with --json each is an object on a line of its own.

The exit code is 0 when all completed and 1 when one did not. When the time runs out it is 4, after Ctrl-C it is 130, and the IDs
of those that have not ended are printed; the tasks go on. With --json each of these is the task's object as it is then, error of
the last failed run included, with "wait":{"kind":"wait_timeout" or "interrupted","message":...} in it.`,
		Examples: []Example{
			{`drover wait feed-pull:mzxw6ytboi`, "wait as long as it takes"},
			{`drover wait $(cat ids) --timeout 1m --json`, "the ends of many tasks, a minute at most"},
		},
		Flags: []Flag{{Name: "timeout", Value: "TIME", Help: "wait no longer than TIME, such as 5s"}},
		Min:   1, Max: -1,
		Complete: completeTask(task.Running, task.Waiting),
		Run:      runWait,
	}
}

func runWait(ctx context.Context, env *Env, args *Args) error {
	patience, err := args.Duration("timeout")
	if err != nil {
		return err
	}
	ids, err := parseIDs(args.Words)
	if err != nil {
		return err
	}
	return followTasks(ctx, env, ids, patience)
}

// parseIDs reads task IDs, each once. Its errors are *ExitError of usage.
func parseIDs(words []string) ([]task.ID, error) {
	ids := make([]task.ID, 0, len(words))
	seen := make(map[task.ID]bool, len(words))
	for _, word := range words {
		id, err := task.ParseID(word)
		if err != nil {
			return nil, usageError("%v", err)
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}
