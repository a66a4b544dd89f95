// Package oneshot runs one command line of the console and says with which exit code the process should end.
//
// It owns the choice of the manager's socket, the dialling and the report of failures. It owns no command (package command
// does) and nothing of the process: main hands its streams, variables and signals in. Run returns when the command has
// ended, at the latest shortly after its context has.
package oneshot
