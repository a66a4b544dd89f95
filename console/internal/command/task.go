package command

import (
	"context"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/task"
)

func taskCommand() *Command {
	return &Command{
		Section: SectionTasks,
		Name:    "task",
		Args:    "ID",
		Summary: "show what is known of a task",
		Help:    "The exit code is 0 when the task is known, whatever its state: wait is the command that judges it.",
		Examples: []Example{
			{`drover task feed-pull:mzxw6ytboi`, "its state, its runs, its result or its error"},
		},
		Min: 1, Max: 1,
		Complete: completeTask(task.Running, task.Dead, task.Failed),
		Run:      runTask,
	}
}

func runTask(ctx context.Context, env *Env, args *Args) error {
	id, err := task.ParseID(args.Words[0])
	if err != nil {
		return usageError("%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	t, err := env.Tasks.Get(ctx, id)
	if err != nil {
		return err
	}
	env.Seen.add(t.ID)
	if env.JSON {
		return screen.WriteJSON(env.Out, t)
	}
	return showTask(env, t)
}
