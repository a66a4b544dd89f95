package command

import (
	"context"
	"fmt"
	"slices"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func diffCommand() *Command {
	return &Command{
		Section:  SectionSettings,
		Name:     "diff",
		Summary:  "the settings that are not as the configuration file says",
		Help:     `"saved" values outlive a restart, "live" ones do not: save keeps them.`,
		Examples: []Example{{`drover diff`, "what was changed"}},
		Run:      runDiff,
	}
}

func runDiff(ctx context.Context, env *Env, _ *Args) error {
	s, err := ask(ctx, "list the settings", env.Control.Settings, &apiv1.SettingsRequest{})
	if err != nil {
		return err
	}
	settings := changed(s.GetSettings())
	if env.JSON {
		return screen.WriteJSON(env.Out, settingsView(s, settings))
	}
	if len(settings) == 0 {
		if _, err := fmt.Fprintln(env.Out, "All settings are as the configuration says."); err != nil {
			return err
		}
		return warnOfSaved(env, broughtBack(s.GetSettings()))
	}
	t := &screen.Table{Columns: []screen.Column{
		{Title: "SETTING"}, {Title: "IN THE FILE", Flexible: true}, {Title: "NOW", Flexible: true}, {Title: "FROM"},
	}}
	for _, x := range settings {
		t.Add(screen.Text(fullName(x.GetQueue(), x.GetName())), screen.Text(x.GetFileValue()), screen.Text(x.GetValue()),
			screen.Cell{Text: x.GetSource(), Paint: sourcePaint(x.GetSource())})
	}
	if err := t.Write(env.Out, env.style()); err != nil {
		return err
	}
	return warnOfSaved(env, broughtBack(s.GetSettings()))
}

// changed are the settings that are not as the file says.
func changed(settings []*apiv1.Setting) []*apiv1.Setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s *apiv1.Setting) bool {
		return s.GetSource() != "live" && s.GetSource() != "saved"
	})
}
