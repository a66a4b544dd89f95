package command

import (
	"context"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/protocol/task"
)

func retryCommand() *Command {
	return &Command{
		Section: SectionTasks,
		Name:    "retry",
		Args:    "[ID...]",
		Summary: "put dead letters back into their queue, and run failed tasks now",
		Help: `A dead letter begins anew, with its counters at nothing. A task that failed and waits for its next run is due at
once. A dead letter whose deadline has passed has none from then on. Where a task was refused the reason is printed and the
exit code is 1.

With --json it prints one object: "changed" is how many were put back, "tasks" what became of each that was named; with
--dead only of those that were refused, so that it is usually empty.`,
		Examples: []Example{
			{`drover retry feed-pull:mzxw6ytboi`, "try one task again"},
			{`drover retry --dead feed-pull --reason unreachable`, "all that died because a server did not answer"},
		},
		Flags:    selectionFlags("retry"),
		Max:      -1,
		Complete: completeTask(task.Dead, task.Failed),
		Run:      runRetry,
	}
}

func runRetry(ctx context.Context, env *Env, args *Args) error {
	selection, err := selectionOf(args)
	if err != nil {
		return err
	}
	answer, err := askWithin(ctx, moveTime, "retry the tasks", env.Control.RetryTasks, &apiv1.RetryTasksRequest{Tasks: selection})
	if err != nil {
		return aboutQueue(ctx, env, selection.GetDeadOfQueue(), err)
	}
	return showMoves(env, selection.GetDeadOfQueue(), "back in the queue", answer.GetChanges(), answer.GetChanged())
}
