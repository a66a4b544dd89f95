package command

import (
	"context"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

func undoCommand() *Command {
	return &Command{
		Section: SectionSettings,
		Name:    "undo",
		Summary: "take the last change of settings back",
		Help: `Each undo goes back one change, until diff is as it was at the start. Where there is none the exit code is 1. What was saved
stays saved: undo says so, and save makes it as it is now.`,
		Examples: []Example{{`drover undo`, "as it was before the last set"}},
		Run: func(ctx context.Context, env *Env, _ *Args) error {
			answer, err := ask(ctx, "undo the last change", env.Control.UndoSettings, &apiv1.UndoSettingsRequest{Who: env.Who})
			if err != nil {
				return err
			}
			effects := effectViews(answer.GetEffects())
			view := changedJSON{Version: answer.GetVersion(), Effects: effects, Back: broughtBackOf(ctx, env, effects)}
			return showEffects(env, view, "")
		},
	}
}
