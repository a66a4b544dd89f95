package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/task"
)

// exportPage is how many dead letters are asked for at once: they come with their payloads.
const exportPage = 200

func exportCommand() *Command {
	return &Command{
		Section: SectionTasks,
		Name:    "export",
		Args:    "QUEUE",
		Summary: "the dead letters of a queue with all that is known of them, as JSON",
		Help: `Each dead letter is an object on a line of its own, the latest first: payload, last error, counters and the runs that ended
badly. Nothing is changed. With --to they are written to a file that only its owner may read, which is there when it is
complete and not before; then the number of them is printed.`,
		Examples: []Example{
			{`drover export feed-pull --to dead.jsonl`, "keep all of them before they are dropped"},
			{`drover export feed-pull --reason timeout | jq .payload`, "what those were about that ran out of time"},
		},
		Flags:    append([]Flag{{Name: "to", Value: "FILE", Help: "write them to FILE, in place of what it holds"}}, filterFlags("")...),
		Min:      1,
		Max:      1,
		Complete: completeQueue,
		Run:      runExport,
	}
}

type exportedJSON struct {
	Queue    string `json:"queue"`
	Exported int    `json:"exported"`
	Path     string `json:"path"`
}

func runExport(ctx context.Context, env *Env, args *Args) error {
	queue, path := args.Words[0], args.Text("to")
	filter, err := filterOf(env, args)
	if err != nil {
		return err
	}
	request := &apiv1.ListTasksRequest{Queue: queue, State: taskv1.State_STATE_DEAD, Filter: filter, Limit: exportPage, WithPayload: true}
	if path == "" {
		_, err := writeDead(ctx, env, env.Out, request)
		return aboutQueue(ctx, env, queue, err)
	}
	n, err := exportTo(ctx, env, path, request)
	switch {
	case err != nil:
		return aboutQueue(ctx, env, queue, err)
	case env.JSON:
		return screen.WriteJSON(env.Out, exportedJSON{Queue: queue, Exported: n, Path: path})
	}
	_, err = fmt.Fprintf(env.Out, "%s of %s: written to %s\n", deadLetters(int64(n)), screen.Clean(queue), screen.Clean(path))
	return err
}

// writeDead writes dead letters page by page and returns how many there were.
func writeDead(ctx context.Context, env *Env, to io.Writer, request *apiv1.ListTasksRequest) (int, error) {
	for n := 0; ; {
		page, err := ask(ctx, "list the dead letters", env.Control.ListTasks, request)
		if err != nil {
			return n, err
		}
		for _, p := range page.GetTasks() {
			t, err := task.FromProto(p)
			if err != nil {
				return n, fmt.Errorf("a dead letter cannot be read: %w", err)
			}
			if err := screen.WriteJSON(to, t); err != nil {
				return n, err
			}
			n++
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return n, nil
		}
	}
}

// exportTo writes dead letters to a file: first to one beside it, which takes its place when it is complete.
func exportTo(ctx context.Context, env *Env, path string, request *apiv1.ListTasksRequest) (n int, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // has mode 0600
	if err != nil {
		return 0, cannotWrite(path, err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()           // what is in it is not wanted
			_ = os.Remove(file.Name()) // the error that is told matters more
		}
	}()
	buffered := bufio.NewWriter(file)
	if n, err = writeDead(ctx, env, buffered, request); err != nil {
		return n, err
	}
	if err := errors.Join(buffered.Flush(), file.Sync(), file.Close(), os.Rename(file.Name(), path)); err != nil {
		return n, cannotWrite(path, err)
	}
	return n, nil
}

func cannotWrite(path string, err error) error {
	return &ExitError{Code: Failed, Kind: "refused", Message: fmt.Sprintf("%.200q cannot be written: %v; name another with --to", path, err)}
}
