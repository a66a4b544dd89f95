// Package session runs the commands of one start of the console, be it one command line, a script or a prompt, and says with which
// exit code the process should end.
//
// It owns the choice of the manager's socket, the dialling and the report of failures. It owns no command (package command
// does), no prompt (package repl) and nothing of the process: main hands its streams, variables and signals in. Run returns when
// all has ended, at the latest shortly after its context has.
package session
