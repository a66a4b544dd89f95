package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// managerScope is how the manager's own settings are called beside those of the queues.
const managerScope = "manager"

func settingsCommand() *Command {
	return &Command{
		Section: SectionSettings,
		Name:    "settings",
		Args:    "[QUEUE | schedule:NAME | manager] [NAME]",
		Summary: "the settings with their values, where these come from and what is allowed",
		Help: `FROM says where a value comes from: default, plugin, file (the configuration), saved (by save, kept over a restart) or live (by
set, until the restart). With a name it says what the setting means and when a change takes effect.`,
		Examples: []Example{
			{`drover settings feed-pull`, "those of a queue"},
			{`drover settings feed-pull max_workers`, "one, with its meaning"},
			{`drover settings manager`, "those of the manager"},
		},
		Max:      2,
		Complete: completeSettingWords,
		Run:      runSettings,
	}
}

type settingJSON struct {
	Queue   string `json:"queue,omitempty"`
	Name    string `json:"name"`
	Value   string `json:"value"`
	Source  string `json:"source"`
	File    string `json:"file_value"`
	Allowed string `json:"allowed"`
	Meaning string `json:"meaning"`
	Takes   string `json:"takes"`
	Unit    string `json:"unit,omitempty"`
	Saved   string `json:"saved_value,omitempty"`
}

type settingsJSON struct {
	Version   uint64        `json:"version"`
	UndoSteps int32         `json:"undo_steps"`
	Settings  []settingJSON `json:"settings"`
}

func settingsView(s *apiv1.SettingsResponse, settings []*apiv1.Setting) settingsJSON {
	view := settingsJSON{Version: s.GetVersion(), UndoSteps: s.GetUndoSteps(), Settings: make([]settingJSON, len(settings))}
	for i, x := range settings {
		view.Settings[i] = settingJSON{
			Queue: x.GetQueue(), Name: x.GetName(), Value: x.GetValue(), Source: x.GetSource(), File: x.GetFileValue(), Allowed: x.GetAllowed(),
			Meaning: x.GetMeaning(), Takes: x.GetTakes(), Unit: x.GetUnit(), Saved: x.GetSavedValue(),
		}
	}
	return view
}

// fullName is a setting's name as set wants it, such as "feed-pull.max_workers".
func fullName(queue, name string) string {
	if queue == "" {
		queue = managerScope
	}
	return queue + "." + name
}

func runSettings(ctx context.Context, env *Env, args *Args) error {
	scope, name := "", ""
	if len(args.Words) > 0 {
		scope = args.Words[0]
	}
	if len(args.Words) > 1 {
		name = args.Words[1]
	}
	if before, after, dotted := cutLast(scope, '.'); dotted && name == "" {
		s, err := ask(ctx, "list the settings", env.Control.Settings, &apiv1.SettingsRequest{})
		if err == nil && slices.ContainsFunc(s.GetSettings(), func(x *apiv1.Setting) bool { return fullName(x.GetQueue(), x.GetName()) == scope }) {
			scope, name = before, after // written as for set
		}
	}
	s, err := ask(ctx, "list the settings", env.Control.Settings, &apiv1.SettingsRequest{Queue: scope})
	if err != nil && strings.HasPrefix(scope, schedulePrefix) {
		return err
	}
	if err != nil {
		return aboutQueue(ctx, env, scope, err)
	}
	settings := s.GetSettings()
	if name != "" {
		i := slices.IndexFunc(settings, func(x *apiv1.Setting) bool { return x.GetName() == name })
		if i < 0 {
			return unknownSetting(name, settings)
		}
		settings = settings[i : i+1]
	}
	switch {
	case env.JSON:
		return screen.WriteJSON(env.Out, settingsView(s, settings))
	case name != "":
		return settingFields(settings[0]).Write(env.Out, env.style())
	default:
		return settingTable(settings, scope == "").Write(env.Out, env.style())
	}
}

func unknownSetting(name string, settings []*apiv1.Setting) *ExitError {
	var names []string
	for _, s := range settings {
		names = append(names, s.GetName())
	}
	return &ExitError{Code: Usage, Kind: "unknown_setting",
		Message: fmt.Sprintf("no such setting: %.60q%s (there are %s)", name, didYouMean(name, names), strings.Join(names, ", "))}
}

func settingFields(s *apiv1.Setting) *screen.Fields {
	var f screen.Fields
	f.Add("Setting", fullName(s.GetQueue(), s.GetName()))
	f.AddPainted("Value", s.GetValue(), sourcePaint(s.GetSource()))
	f.Add("From", s.GetSource())
	if s.GetFileValue() != s.GetValue() {
		f.Add("In the file", s.GetFileValue())
	}
	if comesBack(s) {
		f.AddPainted("Saved", s.GetSavedValue()+", which a restart brings back", screen.Warn)
	}
	f.Add("Allowed", s.GetAllowed())
	f.Add("Takes effect", strings.ReplaceAll(s.GetTakes(), "-", " "))
	f.Add("Meaning", s.GetMeaning())
	return &f
}

func settingTable(settings []*apiv1.Setting, full bool) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "SETTING"}, {Title: "VALUE", Flexible: true}, {Title: "FROM", Flexible: true}, {Title: "IN THE FILE", Spare: 1}, {Title: "ALLOWED", Flexible: true, Spare: 2},
	}}
	for _, s := range settings {
		name := s.GetName()
		if full {
			name = fullName(s.GetQueue(), name)
		}
		file := ""
		if s.GetFileValue() != s.GetValue() {
			file = s.GetFileValue()
		}
		t.Add(screen.Text(name), screen.Cell{Text: s.GetValue(), Paint: sourcePaint(s.GetSource())}, fromCell(s), screen.Text(file), screen.Text(s.GetAllowed()))
	}
	return t
}

func sourcePaint(source string) screen.Paint {
	switch source {
	case "live":
		return screen.Warn
	case "saved":
		return screen.Strong
	default:
		return screen.Plain
	}
}

// completeSettingWords offers queues, "manager" and schedules, then the names of the settings.
func completeSettingWords(ctx context.Context, env *Env, words []string) []string {
	switch len(words) {
	case 1:
		offers := append(namesNow(ctx, env), managerScope)
		for _, name := range schedulesNow(ctx, env) {
			offers = append(offers, schedulePrefix+name)
		}
		return offers
	case 2:
		var names []string
		for _, s := range settingsNow(ctx, env, words[0]) {
			names = append(names, s.GetName())
		}
		return names
	default:
		return nil
	}
}

// settingsNow is the settings of a queue, or of all, of a manager that answers quickly.
func settingsNow(ctx context.Context, env *Env, queue string) []*apiv1.Setting {
	if env.Control == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	s, err := env.Control.Settings(ctx, &apiv1.SettingsRequest{Queue: queue})
	if err != nil {
		return nil // as in quickStatus
	}
	return s.GetSettings()
}

// completeChange offers the full names of settings, and behind the equals sign what is allowed.
func completeChange(ctx context.Context, env *Env, words []string) []string {
	if len(words) == 0 {
		return nil
	}
	var offers []string
	name, _, valued := strings.Cut(words[len(words)-1], "=")
	for _, s := range settingsNow(ctx, env, "") {
		full := fullName(s.GetQueue(), s.GetName())
		if !valued {
			offers = append(offers, full+"=")
			continue
		}
		if full != name {
			continue
		}
		for _, value := range valuesOf(s) {
			offers = append(offers, full+"="+value)
		}
	}
	return offers
}

// valuesOf are values worth offering for a setting: the allowed words, "off" where it is allowed, the value now and that of the
// file.
func valuesOf(s *apiv1.Setting) []string {
	if choices, isChoice := strings.CutPrefix(s.GetAllowed(), "one of "); isChoice {
		return strings.Split(choices, ", ")
	}
	values := []string{s.GetValue(), s.GetFileValue()}
	if strings.Contains(s.GetAllowed(), "or off") {
		values = append(values, "off")
	}
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// cutLast cuts s around the last sep.
func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
