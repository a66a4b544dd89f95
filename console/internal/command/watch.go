package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

func watchCommand() *Command {
	kinds := []string{"tasks", "workers", "queues"}
	return &Command{
		Section: SectionLook,
		Name:    "watch",
		Args:    "[QUEUE | ID]",
		Summary: "what happens, as it happens",
		Help: `A line for each event, until Ctrl-C, which is how one leaves it: the exit code is 0. When the manager goes away it
says so, waits for it and goes on. A terminal that is too slow misses events and is told how many. With --json each event is
an object on a line of its own.`,
		Examples: []Example{
			{`drover watch`, "everything"},
			{`drover watch feed-pull --kind workers`, "the starts and ends of a queue's workers"},
			{`drover watch feed-pull:mzxw6ytboi`, "one task"},
		},
		Flags: []Flag{{Name: "kind", Value: "KIND", Help: "only these: " + strings.Join(kinds, ", "),
			Complete: func(context.Context, *Env) []string { return kinds }}},
		Max:      1,
		Complete: completeWatch,
		Run:      runWatch,
	}
}

// completeWatch offers queues and tasks.
func completeWatch(ctx context.Context, env *Env, words []string) []string {
	return append(completeQueue(ctx, env, words), completeTask(task.Running, task.Waiting)(ctx, env, words)...)
}

func runWatch(ctx context.Context, env *Env, args *Args) error {
	w := &watcher{env: env, kind: args.Text("kind"), request: &apiv1.WatchRequest{}}
	switch w.kind {
	case "", "tasks", "workers", "queues":
	default:
		return usageError("--kind: %.40q is none of tasks, workers and queues", w.kind)
	}
	if len(args.Words) > 0 {
		if id, err := task.ParseID(args.Words[0]); err == nil {
			w.request.TaskId = id.String()
		} else if strings.Contains(args.Words[0], ":") {
			return usageError("%v", err)
		} else {
			s, err := status(ctx, env)
			if err != nil {
				return err
			}
			if _, err := pickQueue(ctx, env, s.GetQueues(), args.Words[0]); err != nil {
				return err
			}
			w.request.Queue = args.Words[0]
		}
	}
	return w.run(ctx)
}

// watcher follows what happens over the restarts of a manager. It is used by one goroutine.
type watcher struct {
	env     *Env
	request *apiv1.WatchRequest
	kind    string
	there   bool // the manager has answered once
}

// between is the pause before a manager that went away is asked again.
const between = 500 * time.Millisecond

func (w *watcher) run(ctx context.Context) error {
	gone := false
	for {
		err := w.stream(ctx, &gone)
		if ctx.Err() != nil { // Ctrl-C is how one leaves it
			return nil //nolint:nilerr // what the stream says then is of no interest
		}
		switch {
		case err == nil || w.there && (errors.Is(err, client.ErrUnavailable) || isStopping(err)):
		default:
			return err
		}
		if !gone {
			gone = true
			if err := w.note("the manager went away; this waits for it and goes on"); err != nil {
				return err
			}
		}
		select {
		case <-time.After(between):
		case <-ctx.Done():
			return nil
		}
	}
}

// isStopping reports whether a manager broke off because it stops.
func isStopping(err error) bool {
	var failure *ExitError
	return errors.As(err, &failure) && failure.Kind == "refused"
}

// stream shows one stream to its end.
func (w *watcher) stream(ctx context.Context, gone *bool) error {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	const what = "watch the manager"
	if !w.there || *gone { // a stream without an event does not say that it is there
		if _, err := status(ctx, w.env); err != nil {
			return err
		}
	}
	stream, err := w.env.Control.Watch(own, w.request)
	if err != nil {
		return refusal(ctx, what, err)
	}
	defer stream.Close()
	w.there = true
	if *gone {
		*gone = false
		if err := w.note("the manager is back"); err != nil {
			return err
		}
	}
	events := make(chan *apiv1.WatchResponse, 1024)
	go func() {
		defer close(events)
		for stream.Receive() {
			select {
			case events <- stream.Msg():
			case <-own.Done():
				return
			}
		}
	}()
	err = w.show(events)
	cancel()
	for range events { // the receiver has ended when this returns
	}
	if err != nil {
		return err
	}
	return refusal(ctx, what, stream.Err())
}

// show writes events. What has come already is written at once, so that a flood costs few writes.
func (w *watcher) show(events <-chan *apiv1.WatchResponse) error {
	out := bufio.NewWriterSize(w.env.Out, 1<<16)
	for e := range events {
		if err := w.one(out, e); err != nil {
			return err
		}
		if len(events) == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// note says something about the watching itself.
func (w *watcher) note(text string) error {
	_, err := fmt.Fprintln(w.env.Err, "drover: "+text)
	return err
}
