package command

import (
	"context"
	"fmt"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func saveCommand() *Command {
	return &Command{
		Section:  SectionSettings,
		Name:     "save",
		Summary:  "keep the live settings over a restart of the manager",
		Help:     `They are written to a file of the manager's own; the configuration file is not touched.`,
		Examples: []Example{{`drover save`, "keep what set has changed"}},
		Run:      runSave,
	}
}

type savedJSON struct {
	Path     string `json:"path"`
	Settings int32  `json:"settings"`
}

func runSave(ctx context.Context, env *Env, _ *Args) error {
	answer, err := ask(ctx, "save the settings", env.Control.SaveSettings, &apiv1.SaveSettingsRequest{Who: env.Who})
	if err != nil {
		return err
	}
	return tellDone(env, savedJSON{Path: answer.GetPath(), Settings: answer.GetSettings()},
		fmt.Sprintf("%s kept in %s.", screen.Things(int64(answer.GetSettings()), "setting"), answer.GetPath()))
}
