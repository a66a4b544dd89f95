package command

import (
	"context"
	"fmt"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func reloadCommand() *Command {
	return &Command{
		Section:  SectionSettings,
		Name:     "reload",
		Summary:  "make the manager read its configuration file again",
		Help:     `It is what SIGHUP does, with an answer: what changes, and what only a restart can change. A file with a mistake changes nothing.`,
		Examples: []Example{{`drover reload`, "after the file was edited"}},
		Run:      runReload,
	}
}

func runReload(ctx context.Context, env *Env, _ *Args) error {
	answer, err := ask(ctx, "reload the configuration", env.Control.Reload, &apiv1.ReloadRequest{Who: env.Who})
	if err != nil {
		return err
	}
	view := changedJSON{Version: answer.GetVersion(), Effects: effectViews(answer.GetEffects()), NeedsRestart: answer.GetNeedsRestart()}
	if err := showEffects(env, view, ""); err != nil || env.JSON {
		return err
	}
	for _, text := range answer.GetNeedsRestart() {
		if _, err := fmt.Fprintln(env.Out, "Needs a restart: "+screen.Clean(text)); err != nil {
			return err
		}
	}
	return nil
}
