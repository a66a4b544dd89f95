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
		Section: SectionSettings,
		Name:    "diff",
		Summary: "the settings that are not as the configuration file says, or not as they are saved",
		Help: `"saved" values outlive a restart, "live" ones do not: save keeps them. "file, but 8 is saved" is a value that holds now
and that a restart replaces by the saved one: save again to keep it.`,
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
		_, err := fmt.Fprintln(env.Out, "All settings are as the configuration says.")
		return err
	}
	t := &screen.Table{Columns: []screen.Column{
		{Title: "SETTING"}, {Title: "IN THE FILE", Flexible: true}, {Title: "NOW", Flexible: true}, {Title: "FROM", Flexible: true},
	}}
	for _, x := range settings {
		t.Add(screen.Text(fullName(x.GetQueue(), x.GetName())), screen.Text(x.GetFileValue()), screen.Text(x.GetValue()),
			fromCell(x))
	}
	if err := t.Write(env.Out, env.style()); err != nil {
		return err
	}
	return warnOfSaved(env, broughtBack(s.GetSettings()))
}

// fromCell says where a value comes from, and what is saved in its place.
func fromCell(s *apiv1.Setting) screen.Cell {
	cell := screen.Cell{Text: s.GetSource(), Paint: sourcePaint(s.GetSource())}
	if comesBack(s) {
		cell.Text, cell.Paint = cell.Text+", but "+s.GetSavedValue()+" is saved", screen.Warn
	}
	return cell
}

// changed are the settings that are not as the file says, or will not be as they are now after a restart.
func changed(settings []*apiv1.Setting) []*apiv1.Setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s *apiv1.Setting) bool {
		return s.GetSource() != "live" && s.GetSource() != "saved" && !comesBack(s)
	})
}
