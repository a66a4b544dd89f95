package command

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

const mostLines = 1_000_000 // that may be asked for; the manager keeps fewer

func logsCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "logs",
		Args:    "WORKER",
		Summary: "what a worker wrote",
		Help: `The manager keeps the last part of what each running worker writes, and of the latest that have ended. With -f it goes
on until the worker ends or Ctrl-C, and then the exit code is 0. With --json each line is an object on a line of its own.`,
		Examples: []Example{
			{`drover logs 17`, "all that is kept"},
			{`drover logs 17 -f -n 20`, "the last 20 lines, and what comes"},
		},
		Flags: []Flag{
			{Name: "follow", Short: 'f', Help: "go on with what the worker writes until it ends"},
			{Name: "lines", Short: 'n', Value: "N", Help: "the last N lines only"},
		},
		Min: 1, Max: 1,
		Complete: completeWorker,
		Run:      runLogs,
	}
}

type logJSON struct {
	Line   *string `json:"line,omitempty"`
	Missed int64   `json:"missed_bytes,omitempty"`
	Ended  string  `json:"ended,omitempty"`
}

func runLogs(ctx context.Context, env *Env, args *Args) error {
	worker, err := parseWorker(args.Words[0])
	if err != nil {
		return err
	}
	lines, err := args.Number("lines", mostLines)
	if err != nil {
		return err
	}
	if !args.Has("follow") {
		bounded, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		ctx = bounded
	}
	const what = "read the worker's output"
	stream, err := env.Control.Logs(ctx, &apiv1.LogsRequest{Worker: worker, Lines: int32(lines), Follow: args.Has("follow")}) //nolint:gosec // bounded by mostLines
	if err != nil {
		return aboutWorker(ctx, env, worker, refusal(ctx, what, err))
	}
	defer stream.Close()
	for stream.Receive() {
		if err := showLog(env, stream.Msg()); err != nil {
			return err
		}
	}
	if ctx.Err() != nil && args.Has("follow") {
		return nil // Ctrl-C is how one leaves it
	}
	return aboutWorker(ctx, env, worker, refusal(ctx, what, stream.Err()))
}

func showLog(env *Env, m *apiv1.LogsResponse) error {
	out := bufio.NewWriter(env.Out)
	if missed := m.GetMissedBytes(); missed > 0 {
		if env.JSON {
			if err := screen.WriteJSON(out, logJSON{Missed: missed}); err != nil {
				return err
			}
		} else {
			_, _ = fmt.Fprintf(out, "(%s are missing here: this reader was slow)\n", screen.Bytes(missed)) // Flush reports it
		}
	}
	if ended := m.GetEnded(); ended != "" {
		if env.JSON {
			if err := screen.WriteJSON(out, logJSON{Ended: ended}); err != nil {
				return err
			}
		} else if err := env.tell("It has ended: " + screen.Clean(ended)); err != nil {
			return err
		}
	}
	for _, line := range m.GetLines() {
		if env.JSON {
			if err := screen.WriteJSON(out, logJSON{Line: &line}); err != nil {
				return err
			}
			continue
		}
		_, _ = fmt.Fprintln(out, strings.Join(screen.CleanLines(line), " ")) // as above
	}
	return out.Flush()
}
