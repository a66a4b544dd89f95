package command

import (
	"context"
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

With --json the answer is JSON on standard output, and so is an error: {"error":{"kind":...,"message":...}}, with the message for a
person on standard error as well. Most commands print one object on one line. tasks, cancel, wait and submit --wait print an object a
line for each task, watch for each event, logs for each line.

Exit codes: 0 done, 1 the task or the command failed, 2 the command line is wrong (also: no such queue, a payload that does
not fit), 3 no manager answers, 4 the time ran out, 130 interrupted by Ctrl-C. Ctrl-C is how one leaves watch, top and logs -f: that is 0.
`

// helpColumns is how wide help is where the width of the output is not known.
const helpColumns = 100

// helpText is help on its way to the reader, wrapped to what there is room for.
type helpText struct {
	strings.Builder
	columns int
}

func newHelp(env *Env) *helpText {
	columns := env.Width()
	if columns <= 0 {
		columns = helpColumns
	}
	return &helpText{columns: columns}
}

// entry writes a text beside its head. Where there is little room it stands below.
func (h *helpText) entry(head, text string) {
	const least = 24
	indent := screen.Width(head)
	if h.columns-indent < least {
		indent = min(gapColumns+gapColumns, indent)
		h.WriteString(strings.TrimRight(head, " ") + "\n")
		head = strings.Repeat(" ", indent)
	}
	for _, line := range screen.Wrap(text, max(least, h.columns-indent)) {
		h.WriteString(strings.TrimRight(head+line, " ") + "\n")
		head = strings.Repeat(" ", indent)
	}
}

// paragraphs writes paragraphs, which an empty line divides; indented lines stay as they are.
func (h *helpText) paragraphs(text string) {
	running := ""
	flush := func() {
		if running != "" {
			h.entry("", running)
		}
		running = ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && line[0] != ' ' {
			running += line + " "
			continue
		}
		flush()
		h.WriteString(line + "\n")
	}
	flush()
}

// showOverview lists all commands.
func (t *Tree) showOverview(env *Env) error {
	if env.JSON {
		views := make([]commandJSON, len(t.commands))
		for i, c := range t.commands {
			views[i] = commandView(c)
		}
		return screen.WriteJSON(env.Out, map[string][]commandJSON{"commands": views})
	}
	h := newHelp(env)
	h.entry("", "drover speaks to a Drover manager: submit tasks, wait for them, see how it is doing, change what it may do.")
	h.WriteString("\n")
	h.entry("  drover COMMAND [--json] [--socket PATH] ...  ", "one command")
	h.entry("  drover                                       ", "a prompt, on a terminal; elsewhere commands from standard input")
	h.entry("  drover [--keep-going] -c 'COMMAND; ...'      ", "several commands")
	for _, section := range sections() {
		h.WriteString("\n" + string(section) + "\n")
		for _, c := range t.commands {
			if c.Section == section {
				h.entry("  "+screen.Pad(c.Name, len("completion"), false)+"  ", c.Summary)
			}
		}
	}
	h.WriteString("\ndrover help COMMAND says more about one.\n\n")
	h.paragraphs(epilogue)
	_, err := env.Out.Write([]byte(h.String()))
	return err
}

// showHelp says everything about one command.
func showHelp(env *Env, c *Command) error {
	if env.JSON {
		return screen.WriteJSON(env.Out, commandView(c))
	}
	h := newHelp(env)
	h.entry("drover "+c.Name+" ", strings.TrimPrefix(c.Usage(), c.Name))
	h.WriteString("\n")
	h.entry("", upperFirst(c.Summary)+".")
	if c.Help != "" {
		h.WriteString("\n")
		h.paragraphs(c.Help)
	}
	h.WriteString("\nFlags\n")
	flags := slices.Concat(c.Flags, commonFlags())
	widest := 0
	for _, f := range flags {
		widest = max(widest, len(f.both()))
	}
	for _, f := range flags {
		h.entry("  "+screen.Pad(f.both(), widest, false)+"  ", f.Help)
	}
	if len(c.Examples) > 0 {
		h.WriteString("\nExamples\n")
		for _, e := range c.Examples {
			h.WriteString("  " + e.Line + "\n") // whole, to be copied
			h.entry("      ", e.Does)
		}
	}
	_, err := env.Out.Write([]byte(h.String()))
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
