package command

import (
	"context"
	"slices"
	"strings"
)

// Tree is all commands. It is never changed.
type Tree struct {
	commands []*Command
}

// New returns the tree of all commands, in the order in which help shows them.
func New() *Tree {
	t := &Tree{}
	t.commands = []*Command{
		submitCommand(), waitCommand(), taskCommand(), whyCommand(), tasksCommand(), cancelCommand(), retryCommand(), dropCommand(), exportCommand(),
		statusCommand(), queuesCommand(), workersCommand(), pluginsCommand(), locksCommand(), schedulesCommand(), managersCommand(), explainCommand(), topCommand(), watchCommand(),
		logsCommand(), stacksCommand(), doctorCommand(),
		pauseCommand(), resumeCommand(), restartCommand(), killCommand(), scheduleCommand(),
		settingsCommand(), setCommand(), unsetCommand(), diffCommand(), undoCommand(), saveCommand(), reloadCommand(),
		pluginCommand(), helpCommand(t), completionCommand(), versionCommand(), exitCommand(),
	}
	return t
}

// Find returns the command of that name, or nil.
func (t *Tree) Find(name string) *Command {
	i := slices.IndexFunc(t.commands, func(c *Command) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return t.commands[i]
}

// Call is a command line that has been understood.
type Call struct {
	Command *Command
	Args    *Args
}

// Parse understands a command line: the command's name, before or after the common flags, and what the command allows. Its
// errors are *ExitError of usage.
func (t *Tree) Parse(words []string) (*Call, error) {
	at, err := commandAt(words)
	if err != nil {
		return nil, err
	}
	if at < 0 {
		return t.parseNoCommand(words)
	}
	name := words[at]
	switch {
	case asksVersion(name):
		name = "version"
	case name == "quit": // as other consoles have it
		name = "exit"
	}
	cmd := t.Find(name)
	if cmd == nil {
		return nil, usageError("no such command: %.60q%s See: drover help", name, orDot(didYouMean(name, t.names())))
	}
	rest := slices.Concat(words[:at], words[at+1:])
	args, err := parseArgs(cmd.Flags, rest)
	if err != nil {
		return nil, err
	}
	if args.Has(FlagHelp) {
		return &Call{Command: t.Find("help"), Args: &Args{Words: []string{name}, flags: args.flags}}, nil
	}
	if len(args.Words) < cmd.Min {
		return nil, usageError("%s needs more words: drover %s", name, cmd.Usage())
	}
	if cmd.Max >= 0 && len(args.Words) > cmd.Max {
		return nil, usageError("%s does not take %.60q: drover %s", name, args.Words[cmd.Max], cmd.Usage())
	}
	return &Call{Command: cmd, Args: args}, nil
}

// parseNoCommand understands a line of common flags only: --help is the command help.
func (t *Tree) parseNoCommand(words []string) (*Call, error) {
	args, err := parseArgs(nil, words)
	if err != nil {
		return nil, err
	}
	if args.Has(FlagHelp) {
		return &Call{Command: t.Find("help"), Args: args}, nil
	}
	return nil, usageError("a command is missing. See: drover help")
}

// commandAt is the place of the command's name behind the common flags, or -1.
func commandAt(words []string) (int, error) {
	scratch := &Args{flags: map[string]string{}}
	for i := 0; i < len(words); {
		if !looksLikeFlag(words[i]) || words[i] == "--" || asksVersion(words[i]) {
			return i, nil
		}
		used, err := scratch.takeFlag(nil, words[i:])
		if err != nil {
			return 0, err
		}
		i += used
	}
	return -1, nil
}

// asksVersion reports whether a word in a command's place is the flag that other programs have for their version.
func asksVersion(word string) bool { return word == "--version" || word == "-version" }

// Run runs a call. JSON in env is set from the call, on a copy.
func (t *Tree) Run(ctx context.Context, env *Env, call *Call) error {
	own := *env
	own.JSON = env.JSON || call.Args.Has(FlagJSON)
	return call.Command.Run(ctx, &own, call.Args)
}

// WantsJSON reports whether a command line, sound or not, asks for JSON.
func WantsJSON(words []string) bool {
	for _, word := range words {
		switch word {
		case "--":
			return false
		case "--" + FlagJSON:
			return true
		}
	}
	return false
}

// Complete offers, sorted, what the last of the words could become: a command, a flag, or what the command knows.
func (t *Tree) Complete(ctx context.Context, env *Env, words []string) []string {
	if len(words) == 0 {
		return t.names()
	}
	last := words[len(words)-1]
	switch {
	case len(words) == 1 && strings.HasPrefix(last, "-"):
		return startingWith(last, flagNames(commonFlags()))
	case len(words) == 1:
		return startingWith(last, t.names())
	}
	cmd := t.Find(words[0])
	if cmd == nil {
		return nil
	}
	if flag, prefix, isValue := valueAt(cmd, words); isValue {
		if flag.Complete == nil {
			return nil
		}
		offers := flag.Complete(ctx, env)
		for i := range offers {
			offers[i] = prefix + offers[i]
		}
		return startingWith(last, offers)
	}
	if strings.HasPrefix(last, "-") {
		return startingWith(last, flagNames(slices.Concat(cmd.Flags, commonFlags())))
	}
	if cmd.Complete == nil {
		return nil
	}
	return startingWith(last, cmd.Complete(ctx, env, plainWords(cmd, words[1:])))
}

// WantsFile reports whether the last of the words could name a file, which a shell completes better.
func (t *Tree) WantsFile(words []string) bool {
	if len(words) == 0 {
		return false
	}
	cmd := t.Find(words[0])
	if cmd == nil {
		cmd = &Command{} // the common flags are there in any case
	}
	if len(words) > 1 {
		if flag, _, isValue := valueAt(cmd, words); isValue {
			return slices.Contains([]string{"PATH", "FILE", "DIR"}, flag.Value)
		}
	}
	return cmd.Files && len(words) > 2 //nolint:mnd // the command, the first and another
}

func flagNames(flags []Flag) []string {
	names := make([]string, len(flags))
	for i, f := range flags {
		names[i] = "--" + f.Name
	}
	return names
}

// TakeCommon takes the flags that stand before a command and the socket, wherever it is given, out of words that are still being typed.
// The last word is left as it is.
func TakeCommon(words []string) (socket string, rest []string) {
	const flag = "--" + FlagSocket
	for i := 0; i < len(words); i++ {
		word := words[i]
		last := i == len(words)-1
		switch {
		case last:
			rest = append(rest, word)
		case word == flag && i+1 < len(words)-1:
			i++
			socket = words[i]
		case strings.HasPrefix(word, flag+"="):
			socket = strings.TrimPrefix(word, flag+"=")
		case len(rest) == 0 && looksLikeFlag(word) && word != flag:
		default:
			rest = append(rest, word)
		}
	}
	return socket, rest
}

// valueAt reports whether the last word is the value of a flag, behind it or as --flag=value; prefix is what stands before the value.
func valueAt(cmd *Command, words []string) (flag Flag, prefix string, is bool) {
	last := words[len(words)-1]
	if name, _, valued := strings.Cut(last, "="); valued && strings.HasPrefix(name, "--") {
		flag, is = findFlag(cmd.Flags, name[2:])
		return flag, name + "=", is
	}
	flag, is = flagBefore(cmd, words[len(words)-2])
	return flag, "", is
}

// flagBefore is the flag that a word is, when the next word is its value.
func flagBefore(cmd *Command, word string) (Flag, bool) {
	if !looksLikeFlag(word) || strings.Contains(word, "=") {
		return Flag{}, false
	}
	flag, known := findFlag(cmd.Flags, strings.TrimLeft(word, "-"))
	return flag, known && flag.Value != "" && !flag.Optional
}

// plainWords leaves flags and their values out.
func plainWords(cmd *Command, words []string) []string {
	var plain []string
	for i, word := range words {
		if i < len(words)-1 && looksLikeFlag(word) {
			continue
		}
		if i > 0 {
			if _, isValue := flagBefore(cmd, words[i-1]); isValue {
				continue
			}
		}
		plain = append(plain, word)
	}
	return plain
}

func (t *Tree) names() []string {
	names := make([]string, 0, len(t.commands))
	for _, c := range t.commands {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

func startingWith(prefix string, offers []string) []string {
	offers = slices.DeleteFunc(slices.Clone(offers), func(s string) bool { return !strings.HasPrefix(s, prefix) })
	slices.Sort(offers)
	return slices.Compact(offers)
}

func orDot(s string) string {
	if s == "" {
		return "."
	}
	return s
}
