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

The dead letters of a queue are put back part by part, the oldest first: Ctrl-C ends that, and what was put back by then
stays so. Letters that die meanwhile are left.

With --json it prints one object: "changed" is how many were put back, "tasks" what became of each that was named; with
--dead only of those that were refused, so that it is usually empty.`,
		Examples: []Example{
			{`drover retry feed-pull:mzxw6ytboi`, "try one task again"},
			{`drover retry --dead feed-pull --reason unreachable`, "all that died because a server did not answer"},
			{`drover retry --dead feed-pull --newer 1h --match refused --dry-run`, "how many of the last hour have that in their error"},
		},
		Flags:    selectionFlags("retry"),
		Max:      -1,
		Complete: completeTask(task.Dead, task.Failed),
		Run:      runRetry,
	}
}

func runRetry(ctx context.Context, env *Env, args *Args) error {
	selection, err := selectionOf(env, args)
	if err != nil {
		return err
	}
	return move(ctx, env, selection, "back in the queue", func(ctx context.Context) (*apiv1.RetryTasksResponse, error) {
		return askWithin(ctx, moveTime, "retry the tasks", env.Control.RetryTasks, &apiv1.RetryTasksRequest{Tasks: selection})
	})
}
