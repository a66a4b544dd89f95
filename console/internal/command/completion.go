package command

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// completionScripts are what shells read to complete the words of drover. They ask drover itself, by WordsCommand.
//
//go:embed completion/drover.*
var completionScripts embed.FS

// WordsCommand is what completion scripts run: drover __complete -- WORDS... prints what the last word, which may be empty, could
// become, a line each. Its exit code is 1 when that could be a file. It is not meant for people.
const WordsCommand = "__complete"

func completionCommand() *Command {
	return &Command{
		Section: SectionConsole,
		Name:    "completion",
		Args:    "SHELL",
		Summary: "a script by which bash, zsh or fish completes the words of drover",
		Help: `It completes what the prompt completes: commands, flags, queues, workers, settings with their values, and tasks. Add one line to
the file that the shell reads at its start:
  ~/.bashrc                   source <(drover completion bash)
  ~/.zshrc                    source <(drover completion zsh)
  ~/.config/fish/config.fish  drover completion fish | source`,
		Examples: []Example{{`drover completion bash`, "the script for bash"}},
		Min:      1, Max: 1,
		Offline: true,
		Complete: func(_ context.Context, _ *Env, words []string) []string {
			if len(words) != 1 {
				return nil
			}
			return shells()
		},
		Run: runCompletion,
	}
}

func shells() []string { return []string{"bash", "fish", "zsh"} }

func runCompletion(_ context.Context, env *Env, args *Args) error {
	shell := args.Words[0]
	if !slices.Contains(shells(), shell) {
		return usageError("no completion for %.40q%s (there is one for %s)", shell, didYouMean(shell, shells()), strings.Join(shells(), ", "))
	}
	script, err := fs.ReadFile(completionScripts, "completion/drover."+shell)
	if err != nil {
		return fmt.Errorf("read the script: %w", err)
	}
	_, err = env.Out.Write(script)
	return err
}
