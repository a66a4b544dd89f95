// Package repl is the prompt: it reads lines with editing, history and completion, and has a session run them.
//
// It owns the line editor and the prompt's line on the screen: nothing else writes while that stands there, and news come above it. It
// owns no command and no connection. Main calls Run, which returns at Ctrl-D, after the command exit, when the terminal goes
// away and when its context ends; a line that was not finished by then is never run.
//
// The library's remote mode is never used, nor its list of candidates, which tears on narrow terminals: candidates are
// written above the prompt.
package repl
