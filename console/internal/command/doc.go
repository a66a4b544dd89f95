// Package command is the tree of Drover's console commands: their names, help, flags, completion and what they do.
//
// The one-shot program and whatever else runs commands (a prompt, a script) use the same Tree. A command owns its
// flags, its output and its exit code. It does not own the connections, the terminal or the process: all of that comes in an Env,
// and no command looks at the process's own streams, variables or clock.
//
// A command is one file: a function that returns its *Command. It ends when its context ends, at the latest; a task that it
// waited for goes on then.
package command
