package command

import (
	"context"
	"fmt"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func versionCommand() *Command {
	return &Command{
		Section:  SectionConsole,
		Name:     "version",
		Summary:  "the version of this program; status shows the manager's",
		Examples: []Example{{`drover version`, "print it"}},
		Offline:  true,
		Run: func(_ context.Context, env *Env, _ *Args) error {
			if env.JSON {
				return screen.WriteJSON(env.Out, map[string]string{"version": env.Version})
			}
			_, err := fmt.Fprintln(env.Out, "drover "+screen.Clean(env.Version))
			return err
		},
	}
}
