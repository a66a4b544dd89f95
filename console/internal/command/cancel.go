package command

import (
	"context"
	"fmt"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/task"
)

func cancelCommand() *Command {
	return &Command{
		Section: SectionTasks,
		Name:    "cancel",
		Args:    "ID...",
		Summary: "end tasks that have not ended",
		Help: `A waiting task ends at once. A running one is asked to stop, and its worker is killed if it does not listen; its
state is still "running" in the answer, and wait shows its end. A task that had ended otherwise stays as it is, and the exit
code is 1. With --json each task is an object on a line of its own.`,
		Examples: []Example{
			{`drover cancel feed-pull:mzxw6ytboi`, "cancel one task"},
		},
		Min: 1, Max: -1,
		Complete: completeTask(task.Running, task.Held, task.Waiting, task.Failed),
		Run:      runCancel,
	}
}

type cancelledJSON struct {
	ID    task.ID    `json:"id"`
	Queue string     `json:"queue"`
	State task.State `json:"state"`
}

func runCancel(ctx context.Context, env *Env, args *Args) error {
	ids, err := parseIDs(args.Words)
	if err != nil {
		return err
	}
	worst := Done
	for _, id := range ids {
		state, err := cancelTask(ctx, env, id)
		if err != nil {
			failure := Explain(ctx, env, err)
			if len(ids) == 1 || failure.Kind != "unknown_task" {
				return failure
			}
			if err := Report(env, failure); err != nil {
				return err
			}
			worst = max(worst, failure.Code)
			continue
		}
		if state.Ended() && state != task.Cancelled {
			worst = max(worst, Failed)
		}
		if err := showCancelled(env, id, state); err != nil {
			return err
		}
	}
	return told(worst)
}

func cancelTask(ctx context.Context, env *Env, id task.ID) (task.State, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return env.Tasks.Cancel(ctx, id)
}

func showCancelled(env *Env, id task.ID, state task.State) error {
	if env.JSON {
		return screen.WriteJSON(env.Out, cancelledJSON{ID: id, Queue: id.Queue, State: state})
	}
	text := "is being stopped"
	switch {
	case state == task.Cancelled:
		text = "cancelled"
	case state.Ended():
		text = "had ended: " + state.String()
	}
	_, err := fmt.Fprintf(env.Out, "%s  %s\n", screen.Clean(id.String()), text)
	return err
}
