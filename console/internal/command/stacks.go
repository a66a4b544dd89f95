package command

import (
	"context"
	"fmt"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func stacksCommand() *Command {
	return &Command{
		Section:  SectionLook,
		Name:     "stacks",
		Args:     "WORKER",
		Summary:  "where a worker is in its code just now",
		Help:     `It works for workers that can write the stacks of their threads; the others are left alone, and the answer says so.`,
		Examples: []Example{{`drover stacks 17`, "what it waits for"}},
		Min:      1, Max: 1,
		Complete: completeWorker,
		Run:      runStacks,
	}
}

func runStacks(ctx context.Context, env *Env, args *Args) error {
	worker, err := parseWorker(args.Words[0])
	if err != nil {
		return err
	}
	answer, err := ask(ctx, "read the worker's stacks", env.Control.Stacks, &apiv1.StacksRequest{Worker: worker})
	if err != nil {
		return aboutWorker(ctx, env, worker, err)
	}
	if env.JSON {
		return screen.WriteJSON(env.Out, map[string]any{"worker": worker, "stacks": answer.GetText()})
	}
	_, err = fmt.Fprintln(env.Out, strings.Join(screen.CleanLines(answer.GetText()), "\n"))
	return err
}
