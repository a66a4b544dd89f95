package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/console/internal/scaffold"
	"github.com/drover-jobs/drover/console/internal/screen"
)

// madeJSON is what `plugin new` says to a program.
type madeJSON struct {
	Name  string   `json:"name"`
	Lang  string   `json:"lang"`
	Dir   string   `json:"dir"`
	Files []string `json:"files"`
	YAML  string   `json:"yaml"`
	Next  []string `json:"next"`
	Notes []string `json:"notes"`
}

func runPluginNew(env *Env, args *Args, words []string) error {
	if len(words) != 1 {
		return usageError("plugin new needs one name: drover plugin new NAME --lang %s", strings.Join(scaffold.Langs(), "|"))
	}
	plan := scaffold.Plan{Name: words[0], Lang: args.Text("lang"), Dir: args.Text("dir"), SDK: args.Text("sdk"), Exec: execPath(args)}
	if plan.Lang == "" {
		plan.Lang = "go"
	}
	if err := plan.Check(); err != nil {
		hint := didYouMean(plan.Lang, scaffold.Langs()) // nothing for one that is there
		if slices.Contains(scaffold.Langs(), plan.Lang) {
			hint = ""
			plan.Name = lowerName(plan.Name)
			if plan.Check() == nil {
				hint = fmt.Sprintf(", did you mean %q?", plan.Name)
			}
		}
		return usageError("%v%s", err, hint)
	}
	if plan.Lang == "go" && plan.SDK == "" {
		here, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("find the working directory: %w", err)
		}
		plan.SDK = scaffold.FindSDK(here, programDir())
	}
	made, err := scaffold.Write(plan)
	if err != nil {
		return &ExitError{Code: Failed, Kind: "not_written", Message: err.Error()}
	}
	if env.JSON {
		notes := append([]string{}, made.Notes...)
		return screen.WriteJSON(env.Out, madeJSON{Name: plan.Name, Lang: plan.Lang, Dir: made.Dir, Files: made.Files, YAML: made.YAML, Next: made.Next, Notes: notes})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "A worker in %s is ready:\n\n", plan.Lang)
	for _, name := range made.Files {
		fmt.Fprintf(&b, "  %s\n", screen.Clean(filepath.Join(made.Dir, name)))
	}
	b.WriteString("\nTest it:\n\n")
	fmt.Fprintf(&b, "  %s\n", screen.Clean(made.Next[0]))
	b.WriteString("\nAdd this to the manager's configuration, and make it read that with `drover reload`:\n\n")
	for line := range strings.Lines(made.YAML) {
		fmt.Fprintf(&b, "  %s\n", screen.Clean(strings.TrimSuffix(line, "\n")))
	}
	b.WriteString("\nThen give it work:\n\n")
	for _, line := range made.Next[1:] {
		fmt.Fprintf(&b, "  %s\n", screen.Clean(line))
	}
	for _, note := range made.Notes {
		fmt.Fprintf(&b, "\n%s\n", screen.Clean(note))
	}
	_, err = env.Out.Write([]byte(b.String()))
	return err
}

// lowerName is a text made into a worker's name: small letters, with a dash for each space.
func lowerName(text string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), " ", "-")
}
