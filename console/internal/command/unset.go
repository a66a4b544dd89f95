package command

import (
	"context"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

func unsetCommand() *Command {
	return &Command{
		Section:  SectionSettings,
		Name:     "unset",
		Args:     "QUEUE.NAME...",
		Summary:  "take live values of settings away, so that the configuration's hold again",
		Examples: []Example{{`drover unset feed-pull.max_workers`, "back to what the file says"}},
		Flags:    []Flag{dryRunFlag()},
		Min:      1, Max: -1,
		Complete: completeChanged,
		Run: func(ctx context.Context, env *Env, args *Args) error {
			changes := make([]*apiv1.SettingChange, len(args.Words))
			for i, word := range args.Words {
				c, err := changeOf(word)
				if err != nil {
					return err
				}
				c.Unset = true
				changes[i] = c
			}
			return change(ctx, env, changes, args.Has("dry-run"))
		},
	}
}

// completeChanged offers the settings that differ from the file.
func completeChanged(ctx context.Context, env *Env, words []string) []string {
	if len(words) == 0 || strings.Contains(words[len(words)-1], "=") {
		return nil
	}
	var offers []string
	for _, s := range changed(settingsNow(ctx, env, "")) {
		offers = append(offers, fullName(s.GetQueue(), s.GetName()))
	}
	return offers
}
