package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func helpCommand(tree *Tree) *Command {
	return &Command{
		Section: SectionConsole,
		Name:    "help",
		Args:    "[COMMAND]",
		Summary: "what the commands do and how they are used",
		Examples: []Example{
			{`drover help submit`, "everything about one command"},
		},
		Max:     1,
		Offline: true,
		Complete: func(_ context.Context, _ *Env, words []string) []string {
			if len(words) != 1 {
				return nil
			}
			return tree.names()
		},
		Run: func(_ context.Context, env *Env, args *Args) error {
			if len(args.Words) == 0 {
				return tree.showOverview(env)
			}
			cmd := tree.Find(args.Words[0])
			if cmd == nil {
				return usageError("no such command: %.60q%s See: drover help", args.Words[0], orDot(didYouMean(args.Words[0], tree.names())))
			}
			return showHelp(env, cmd)
		},
	}
}

const epilogue = `The manager's socket is --socket PATH, else $DROVER_SOCKET, else the first that exists of var/drover.sock,
$XDG_RUNTIME_DIR/drover/drover.sock and /run/drover/drover.sock. A manager on the network is https://HOST:PORT instead of a path; then
$DROVER_TOKEN_FILE names a file with the token, and $DROVER_CA_FILE one with the certificates to believe in.

At the prompt and in scripts a semicolon or the end of the line ends a command, # begins a comment, and 'quotes', "quotes" and \
work as in a shell; JSON needs none: submit feed-pull {"url": "https://example.org/feed.xml"}. The prompt completes commands, flags,
queues, workers, settings and tasks with Tab, and a ! in it says that something is wrong: status or doctor tell what. Ctrl-C
interrupts a command, Ctrl-D leaves. A script stops at the first command that fails, with its exit code, unless --keep-going.

With --json the answer is JSON on standard output, one object a line, and so is an error: {"error":{"kind":...,"message":...}},
with the message for a person on standard error as well.

Exit codes: 0 done, 1 the task or the command failed, 2 the command line is wrong (also: no such queue, a payload that does
not fit), 3 no manager answers, 4 the time ran out, 130 interrupted by Ctrl-C.
`

// showOverview lists all commands.
func (t *Tree) showOverview(env *Env) error {
	if env.JSON {
		views := make([]commandJSON, len(t.commands))
		for i, c := range t.commands {
			views[i] = commandView(c)
		}
		return screen.WriteJSON(env.Out, map[string][]commandJSON{"commands": views})
	}
	var b strings.Builder
	b.WriteString("drover speaks to a Drover manager: submit tasks, wait for them, see how it is doing, change what it may do.\n\n")
	b.WriteString("  drover COMMAND [--json] [--socket PATH] ...\n" +
		"  drover                                      a prompt, on a terminal; elsewhere commands from standard input\n" +
		"  drover [--keep-going] -c 'COMMAND; ...'     several commands\n")
	for _, section := range sections() {
		fmt.Fprintf(&b, "\n%s\n", section)
		for _, c := range t.commands {
			if c.Section == section {
				fmt.Fprintf(&b, "  %s  %s\n", screen.Pad(c.Name, len("completion"), false), c.Summary)
			}
		}
	}
	b.WriteString("\ndrover help COMMAND says more about one.\n\n" + epilogue)
	_, err := env.Out.Write([]byte(b.String()))
	return err
}

// showHelp says everything about one command.
func showHelp(env *Env, c *Command) error {
	if env.JSON {
		return screen.WriteJSON(env.Out, commandView(c))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "drover %s\n\n%s.\n", c.Usage(), upperFirst(c.Summary))
	if c.Help != "" {
		fmt.Fprintf(&b, "\n%s\n", c.Help)
	}
	b.WriteString("\nFlags\n")
	flags := slices.Concat(c.Flags, commonFlags())
	widest := 0
	for _, f := range flags {
		widest = max(widest, len(f.both()))
	}
	for _, f := range flags {
		fmt.Fprintf(&b, "  %s  %s\n", screen.Pad(f.both(), widest, false), f.Help)
	}
	if len(c.Examples) > 0 {
		b.WriteString("\nExamples\n")
		for _, e := range c.Examples {
			fmt.Fprintf(&b, "  %s\n      %s\n", e.Line, e.Does)
		}
	}
	_, err := env.Out.Write([]byte(b.String()))
	return err
}

type commandJSON struct {
	Name    string     `json:"name"`
	Usage   string     `json:"usage"`
	Summary string     `json:"summary"`
	Flags   []flagJSON `json:"flags"`
}

type flagJSON struct {
	Name     string `json:"name"`
	Short    string `json:"short,omitempty"`
	Value    string `json:"value,omitempty"`
	Optional bool   `json:"value_optional,omitempty"`
	Help     string `json:"help"`
}

func commandView(c *Command) commandJSON {
	view := commandJSON{Name: c.Name, Usage: c.Usage(), Summary: c.Summary}
	for _, f := range slices.Concat(c.Flags, commonFlags()) {
		flag := flagJSON{Name: f.Name, Value: f.Value, Optional: f.Optional, Help: f.Help}
		if f.Short != 0 {
			flag.Short = string(rune(f.Short))
		}
		view.Flags = append(view.Flags, flag)
	}
	return view
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
