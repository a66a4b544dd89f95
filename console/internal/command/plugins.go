package command

import (
	"context"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func pluginsCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "plugins",
		Summary: "the worker programs that the manager knows",
		Help:    "With --json it also has the JSON Schema of each plugin's payload.",
		Examples: []Example{
			{`drover plugins`, "their versions, commands and what is wrong with them"},
		},
		Run: runPlugins,
	}
}

func runPlugins(ctx context.Context, env *Env, _ *Args) error {
	s, err := status(ctx, env)
	if err != nil {
		return err
	}
	if env.JSON {
		return screen.WriteJSON(env.Out, map[string][]pluginJSON{"plugins": pluginViews(s.GetPlugins())})
	}
	return pluginTable(s.GetPlugins()).Write(env.Out, env.style())
}

func pluginTable(plugins []*apiv1.Plugin) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "PLUGIN"}, {Title: "VERSION"}, {Title: "STATE", Flexible: true}, {Title: "COMMAND", Flexible: true, Spare: 1},
		{Title: "WHAT IT DOES", Flexible: true, Spare: 2},
	}}
	for _, p := range plugins {
		state := screen.Cell{Text: "ok", Paint: screen.Good}
		if p.GetError() != "" {
			state = screen.Cell{Text: p.GetError(), Paint: screen.Bad}
		}
		if p.GetError() == "" && p.GetRefused() != "" {
			state = screen.Cell{Text: "ok, a newer program is refused: " + p.GetRefused(), Paint: screen.Warn}
		}
		t.Add(screen.Text(p.GetName()), screen.Text(p.GetVersion()), state,
			screen.Text(strings.Join(p.GetCommand(), " ")), screen.Text(p.GetDescription()))
	}
	return t
}
