package main

import (
	"context"
	"fmt"
	"os"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/console/internal/repl"
	"github.com/drover-jobs/drover/console/internal/session"
	"github.com/drover-jobs/drover/console/internal/terminal"
)

// prompt returns what shows the prompt on a terminal.
func prompt(t *terminal.Terminal) func(ctx context.Context, s *session.Session) command.Code {
	return func(ctx context.Context, s *session.Session) command.Code {
		if err := repl.Run(ctx, t, s, repl.HistoryFile(os.Getenv)); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "drover:", err) // the exit code still tells
			return command.Failed
		}
		return command.Done
	}
}
