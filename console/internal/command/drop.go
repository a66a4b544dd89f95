package command

import (
	"context"
	"fmt"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/protocol/task"
)

func dropCommand() *Command {
	return &Command{
		Section: SectionTasks,
		Name:    "drop",
		Args:    "[ID...]",
		Summary: "take tasks that do not run out of their queue, for good",
		Help: `It asks first; --yes is the answer in a script. A task that runs is refused: cancel ends it. Whoever waits for a dropped
task is told so. --dead takes the dead letters of a queue part by part, and Ctrl-C ends that, as with retry.
With --json it prints one object, as retry does.`,
		Examples: []Example{
			{`drover drop feed-pull:mzxw6ytboi`, "throw one task away"},
			{`drover drop --dead feed-pull --reason invalid_payload --yes`, "the dead letters that can never work, without asking"},
			{`drover drop --dead feed-pull --older 720h --dry-run`, "how many have lain there for a month"},
		},
		Flags:    append(selectionFlags("drop"), yesFlag()),
		Max:      -1,
		Complete: completeTask(task.Dead, task.Failed, task.Waiting),
		Run:      runDrop,
	}
}

func runDrop(ctx context.Context, env *Env, args *Args) error {
	selection, err := selectionOf(env, args)
	if err != nil {
		return err
	}
	if !selection.GetDead().GetDryRun() {
		question, err := dropQuestion(ctx, env, args, selection)
		if err != nil {
			return err
		}
		if err := env.confirm(ctx, args, question); err != nil {
			return err
		}
	}
	return move(ctx, env, selection, "dropped", func(ctx context.Context) (*apiv1.DropTasksResponse, error) {
		return askWithin(ctx, moveTime, "drop the tasks", env.Control.DropTasks, &apiv1.DropTasksRequest{Tasks: selection})
	})
}

// dropQuestion says what will be gone.
func dropQuestion(ctx context.Context, env *Env, args *Args, selection *apiv1.TaskSelection) (string, error) {
	queue := selection.GetDead().GetQueue()
	switch {
	case queue == "" && len(selection.GetIds()) == 1:
		return fmt.Sprintf("Drop %s for good?", selection.GetIds()[0]), nil
	case queue == "":
		return fmt.Sprintf("Drop %d tasks for good?", len(selection.GetIds())), nil
	case selection.GetDead().GetFilter() != nil:
		return fmt.Sprintf("Drop all dead letters of %s that %s, for good?", queue, strings.Join(filterWords(args), " and ")), nil
	case args.Has("yes"):
		return "", nil
	}
	n, err := deadCount(ctx, env, queue)
	return fmt.Sprintf("Drop all %s of %s for good?", n, queue), err
}
