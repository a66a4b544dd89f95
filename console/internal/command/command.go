package command

import (
	"context"
	"slices"
	"strings"
)

// Command is one entry of the tree.
type Command struct {
	Name string
	// Args is what follows the name in the usage line, such as "ID...".
	Args string
	// Section is the heading under which help lists it.
	Section Section
	// Summary says in one line what it does.
	Summary string
	// Help is more to know, in paragraphs; it may be empty.
	Help string
	// Examples are lines to type and what they do.
	Examples []Example
	Flags    []Flag
	// Min and Max bound the number of words that are no flags; a Max below 0 is no bound.
	Min, Max int
	// Offline is true when it needs no manager: its Env may have no clients.
	Offline bool
	// Files is true when its words behind the first may name files, for the completion of a shell.
	Files bool
	// Complete offers what the last of the words, which may be empty, could become; nil offers nothing.
	Complete func(ctx context.Context, env *Env, words []string) []string
	// Run does it. It returns nil, a *ExitError, or any other error, which Explain turns into one.
	Run func(ctx context.Context, env *Env, args *Args) error
}

// Section is a heading of help.
type Section string

// The sections, in their order.
const (
	SectionTasks    Section = "Tasks"
	SectionLook     Section = "How it is doing"
	SectionOperate  Section = "Queues and workers"
	SectionSettings Section = "Settings"
	SectionConsole  Section = "The console"
)

func sections() []Section {
	return []Section{SectionTasks, SectionLook, SectionOperate, SectionSettings, SectionConsole}
}

// Example is a line to type and what it does.
type Example struct {
	Line, Does string
}

// Flag is one option of a command.
type Flag struct {
	Name string
	// Value names its value, such as "PATH"; empty for a flag that is there or not.
	Value string
	// Optional is true when the value may be left out; then it is given as --name=value only.
	Optional bool
	// Short is a letter that may be given instead, as in -f; 0 for none.
	Short byte
	Help  string
	// Complete offers values; nil offers nothing.
	Complete func(ctx context.Context, env *Env) []string
}

// usage is the flag as the usage line shows it.
func (f Flag) usage() string {
	if f.Short != 0 {
		return strings.TrimSpace("-" + string(rune(f.Short)) + " " + f.Value)
	}
	switch {
	case f.Value == "":
		return "--" + f.Name
	case f.Optional:
		return "--" + f.Name + "[=" + f.Value + "]"
	default:
		return "--" + f.Name + " " + f.Value
	}
}

// both is the flag as the list of flags shows it, with its letter when it has one.
func (f Flag) both() string {
	if f.Short == 0 {
		return f.usage()
	}
	return strings.TrimSpace("-" + string(rune(f.Short)) + ", --" + f.Name + " " + f.Value)
}

// Usage is the command's line in help: name, words and its own flags.
func (c *Command) Usage() string {
	line := c.Name
	if c.Args != "" {
		line += " " + c.Args
	}
	for _, f := range c.Flags {
		line += " [" + f.usage() + "]"
	}
	return line
}

// Names of the flags that every command has.
const (
	FlagJSON   = "json"
	FlagSocket = "socket"
	FlagHelp   = "help"
)

// commonFlags are the flags that every command has.
func commonFlags() []Flag {
	return []Flag{
		{Name: FlagJSON, Help: "print JSON, one object on one line unless it says otherwise, also for errors"},
		{Name: FlagSocket, Value: "PATH", Help: "the manager's socket"},
		{Name: FlagHelp, Help: "say how the command is used"},
	}
}

// flag finds a flag of the command, or a common one.
func findFlag(own []Flag, name string) (Flag, bool) {
	all := slices.Concat(own, commonFlags())
	i := slices.IndexFunc(all, func(f Flag) bool { return f.Name == name || f.Short != 0 && name == string(rune(f.Short)) })
	if i < 0 {
		return Flag{}, false
	}
	return all[i], true
}
