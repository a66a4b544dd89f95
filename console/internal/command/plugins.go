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
		Help: `STATE is "ok", "not usable" (the program does not start or does not describe itself, as the line below says) or
"refused" (a newer program on disk is not used, and the old one goes on). --json also has the JSON Schema of each plugin's
payload.`,
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

// pluginError is why a plugin is not usable, without its name, which stands beside it; empty when it is.
func pluginError(p *apiv1.Plugin) string {
	return strings.TrimPrefix(p.GetError(), "plugin "+p.GetName()+": ")
}

// refusedText says that a newer program is not used.
func refusedText(why string) string {
	return "a newer program on disk is refused, the old one goes on: " + why
}

func pluginTable(plugins []*apiv1.Plugin) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "PLUGIN"}, {Title: "VERSION"}, {Title: "STATE"}, {Title: "COMMAND", Flexible: true, Spare: 1},
		{Title: "WHAT IT DOES", Flexible: true, Spare: 2},
	}}
	for _, p := range plugins {
		state := screen.Cell{Text: "ok", Paint: screen.Good}
		switch {
		case p.GetError() != "":
			state = screen.Cell{Text: "not usable", Paint: screen.Bad}
		case p.GetRefused() != "":
			state = screen.Cell{Text: "refused", Paint: screen.Warn}
		}
		t.Add(screen.Text(p.GetName()), screen.Text(p.GetVersion()), state,
			screen.Text(strings.Join(p.GetCommand(), " ")), screen.Text(p.GetDescription()))
		t.Note(pluginError(p), screen.Bad)
		if why := p.GetRefused(); why != "" && why != p.GetError() {
			t.Note(refusedText(why), screen.Warn)
		}
	}
	return t
}
