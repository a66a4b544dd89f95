package command

import (
	"context"
	"fmt"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func pauseCommand() *Command {
	return &Command{
		Section: SectionOperate,
		Name:    "pause",
		Args:    "QUEUE",
		Summary: "take no more tasks of a queue; those that run go on",
		Help: `All managers stop taking tasks of the queue until resume, also after their restart. With --here only this manager stops, until
its restart; that works while the broker is away.`,
		Examples: []Example{
			{`drover pause feed-pull`, "in all managers"},
			{`drover pause feed-pull --here`, "in this manager only"},
		},
		Flags: []Flag{{Name: "here", Help: "only in this manager"}},
		Min:   1, Max: 1,
		Complete: completeQueue,
		Run:      runPause,
	}
}

// doneJSON is the answer of a command that either works or does not.
type doneJSON struct {
	Queue string `json:"queue"`
	Done  string `json:"done"`
	Here  bool   `json:"here,omitempty"`
}

func runPause(ctx context.Context, env *Env, args *Args) error {
	queue, here := args.Words[0], args.Has("here")
	if _, err := ask(ctx, "pause the queue", env.Control.Pause, &apiv1.PauseRequest{Queue: queue, Here: here}); err != nil {
		return aboutQueue(ctx, env, queue, err)
	}
	where := "in all managers"
	if here {
		where = "in this manager only"
	}
	return tellDone(env, doneJSON{Queue: queue, Done: "paused", Here: here},
		fmt.Sprintf("%s is paused %s; what runs goes on. drover resume %s takes it up again.", queue, where, queue))
}

func tellDone(env *Env, view any, text string) error {
	if env.JSON {
		return screen.WriteJSON(env.Out, view)
	}
	_, err := fmt.Fprintln(env.Out, screen.Clean(text))
	return err
}
