package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func setCommand() *Command {
	return &Command{
		Section: SectionSettings,
		Name:    "set",
		Args:    "QUEUE.NAME=VALUE...",
		Summary: "change settings of the running manager, all at once or none",
		Help: `It prints each setting before and after, and what follows from it. manager.NAME=VALUE changes a setting of the manager,
schedule:NAME.SETTING=VALUE one of a schedule. A change lives until the manager's restart: save keeps it, undo takes the last one
back, diff shows all.`,
		Examples: []Example{
			{`drover set feed-pull.max_workers=8`, "more workers, at once"},
			{`drover set feed-pull.memory_max=512MiB feed-pull.slots=2 --dry-run`, "what would happen"},
			{`drover set manager.max_memory=1GiB`, "a limit for all workers together"},
		},
		Flags: []Flag{dryRunFlag()},
		Min:   1, Max: -1,
		Complete: completeChange,
		Run: func(ctx context.Context, env *Env, args *Args) error {
			changes, err := changesOf(args.Words)
			if err != nil {
				return err
			}
			return change(ctx, env, changes, args.Has("dry-run"))
		},
	}
}

func dryRunFlag() Flag {
	return Flag{Name: "dry-run", Help: "check it and say what would happen, only"}
}

// changesOf reads QUEUE.NAME=VALUE words. Its errors are of usage.
func changesOf(words []string) ([]*apiv1.SettingChange, error) {
	changes := make([]*apiv1.SettingChange, len(words))
	for i, word := range words {
		name, value, hasValue := strings.Cut(word, "=")
		if !hasValue || value == "" {
			return nil, usageError("%.80q has no value: write QUEUE.NAME=VALUE, such as feed-pull.max_workers=8; unset takes a live value away", word)
		}
		c, err := changeOf(name)
		if err != nil {
			return nil, err
		}
		c.Value = value
		changes[i] = c
	}
	return changes, nil
}

// changeOf reads QUEUE.NAME.
func changeOf(full string) (*apiv1.SettingChange, error) {
	queue, name, dotted := cutLast(full, '.')
	if !dotted || queue == "" || name == "" {
		return nil, usageError("%.80q names no setting: write QUEUE.NAME, such as feed-pull.max_workers, or manager.NAME; settings lists them", full)
	}
	if queue == managerScope {
		queue = ""
	}
	return &apiv1.SettingChange{Queue: queue, Name: name}, nil
}

func change(ctx context.Context, env *Env, changes []*apiv1.SettingChange, dryRun bool) error {
	answer, err := ask(ctx, "change the settings", env.Control.ChangeSettings,
		&apiv1.ChangeSettingsRequest{Changes: changes, Who: env.Who, DryRun: dryRun})
	if err != nil {
		for _, c := range changes {
			if c.GetQueue() == "" {
				continue
			}
			err = aboutSetting(ctx, env, c.GetQueue(), err)
		}
		return err
	}
	note := "It holds until the manager's restart: save keeps it, undo takes it back."
	if dryRun {
		note = "Nothing was changed: this was a dry run."
	}
	view := changedJSON{Version: answer.GetVersion(), DryRun: dryRun, Effects: effectViews(answer.GetEffects())}
	if !dryRun {
		view.Back = broughtBackOf(ctx, env, view.Effects)
	}
	return showEffects(env, view, note)
}

// aboutSetting replaces the error for a queue that is another manager's: its settings are changed there.
func aboutSetting(ctx context.Context, env *Env, queue string, err error) error {
	names := queueNames(quickStatus(ctx, env).GetQueues())
	if len(names) > 0 && !slices.Contains(names, queue) && len(othersWith(ctx, env, queue)) > 0 {
		return unknownQueue(ctx, env, queue, names)
	}
	return aboutQueue(ctx, env, queue, err)
}

type effectJSON struct {
	Queue  string `json:"queue,omitempty"`
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
	Effect string `json:"effect,omitempty"`
}

type changedJSON struct {
	Version      uint64       `json:"version"`
	DryRun       bool         `json:"dry_run,omitempty"`
	Effects      []effectJSON `json:"effects"`
	NeedsRestart []string     `json:"needs_restart,omitempty"`
	// Back is what a restart brings back.
	Back []broughtBackJSON `json:"restart_brings_back,omitempty"`
}

func effectViews(effects []*apiv1.SettingEffect) []effectJSON {
	views := make([]effectJSON, len(effects))
	for i, e := range effects {
		views[i] = effectJSON{Queue: e.GetQueue(), Name: e.GetName(), Before: e.GetBefore(), After: e.GetAfter(), Effect: e.GetEffect()}
	}
	return views
}

// showEffects tells what changed, and note beside it when something did.
func showEffects(env *Env, view changedJSON, note string) error {
	if env.JSON {
		return screen.WriteJSON(env.Out, view)
	}
	if len(view.Effects) == 0 {
		_, err := fmt.Fprintln(env.Out, "Nothing changes: the settings are like that already.")
		return err
	}
	for _, e := range view.Effects {
		line := fmt.Sprintf("%s  %s -> %s", fullName(e.Queue, e.Name), orNothing(e.Before), orNothing(e.After))
		if e.Effect != "" {
			line += ": " + e.Effect
		}
		if _, err := fmt.Fprintln(env.Out, screen.Clean(line)); err != nil {
			return err
		}
	}
	if note != "" {
		if err := env.tell(note); err != nil {
			return err
		}
	}
	return warnOfSaved(env, view.Back)
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}
