package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// answerTime bounds a question that a manager answers at once.
const answerTime = 15 * time.Second

func submitCommand() *Command {
	return &Command{
		Section: SectionTasks,
		Name:    "submit",
		Args:    "QUEUE [JSON | key=value...]",
		Summary: "put a task into a queue, and wait for it if asked to",
		Help: `The payload is one JSON object: as one word, or from a file with @FILE, or from standard input with -.
Or it is made of key=value words. A value that is JSON (a number, true, false, null, an object, an array, a string in
quotes) is taken as such; every other value is a string. To force a string, put it in double quotes of its own:
code='"5"'. key=@FILE takes a file's text as a string, key=@- standard input, and key='"@x"' is the string @x.
a.b=1 sets b inside of a; \. is a dot in a name.

Without --wait it prints the task's ID. The same work submitted while it waits or runs is one task: the second submit
joins the first. --again makes a task of its own.

--keep 0 keeps no record of the end: who waits hears how it ended, but not the result, and afterwards the task is unknown.

With --wait it waits until the task has ended, at most as long as it says, and prints the end. When the time runs out, or
after Ctrl-C, the task goes on; its ID is printed. With --json that is the task's object as it is then, error of the last
failed run included, with "wait":{"kind":"wait_timeout" or "interrupted","message":...} in it.`,
		Examples: []Example{
			{`drover submit feed-pull url=https://example.org/feed.xml`, "print the task's ID and go on"},
			{`drover submit feed-pull url=https://example.org/feed.xml force=true --wait=30s`, "wait for the end, 30 seconds at most"},
			{`drover submit feed-pull '{"url":"https://example.org/feed.xml"}' --wait --json`, "one JSON object for a program"},
			{`drover submit feed-pull url=@address.txt --in 10m`, "a value from a file, and not before ten minutes have passed"},
		},
		Flags: []Flag{
			{Name: "wait", Value: "TIME", Optional: true, Help: "wait for the end, at most TIME such as 5s; without TIME, as long as it takes"},
			{Name: "in", Value: "TIME", Help: "do not run it before TIME has passed; whole seconds, rounded up"},
			{Name: "within", Value: "TIME", Help: "let it expire when it has not begun by then, and stop a run then"},
			{Name: "keep", Value: "TIME", Help: "keep the record of its end for TIME, instead of what the queue's retention says; 0 keeps none"},
			{Name: "urgent", Help: "put it at the head of its queue"},
			{Name: "again", Help: "run it even if the same work is waiting or running"},
		},
		Min: 1, Max: -1,
		Files:    true,
		Complete: completeSubmit,
		Run:      runSubmit,
	}
}

func runSubmit(ctx context.Context, env *Env, args *Args) error {
	patience, err := args.Duration("wait")
	if err != nil {
		return err
	}
	options, err := submitOptions(env, args)
	if err != nil {
		return err
	}
	queue := args.Words[0]
	payload, err := payloadOf(env, args.Words[1:])
	if err != nil {
		return withWaitHint(args, err)
	}
	submitted, err := submit(ctx, env, queue, payload, options...)
	if err != nil {
		return withQueueHint(ctx, env, queue, err)
	}
	env.Seen.add(submitted.ID)
	if err := tellJoined(ctx, env, submitted, args); err != nil {
		return err
	}
	if args.Has("wait") {
		return followTasks(ctx, env, []task.ID{submitted.ID}, patience)
	}
	return showSubmitted(env, submitted)
}

// submitOptions is what the flags say about the task.
func submitOptions(env *Env, args *Args) ([]client.Option, error) {
	options := []client.Option{client.Unique(!args.Has("again"))}
	for flag, option := range map[string]func(time.Duration) client.Option{
		"in":     client.Delay,
		"within": func(d time.Duration) client.Option { return client.Deadline(env.Now().Add(d)) },
	} {
		d, err := args.Duration(flag)
		if err != nil {
			return nil, err
		}
		if d > 0 {
			options = append(options, option(d))
		}
	}
	keep, given, err := args.Keep("keep")
	if err != nil {
		return nil, err
	}
	if given {
		options = append(options, client.Retention(keep))
	}
	if args.Has("urgent") {
		options = append(options, client.Urgent())
	}
	return options, nil
}

func submit(ctx context.Context, env *Env, queue string, payload any, options ...client.Option) (client.Submitted, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return env.Tasks.Submit(ctx, queue, payload, options...)
}

// submittedJSON is the answer to a submit that does not wait.
type submittedJSON struct {
	ID     task.ID    `json:"id"`
	Queue  string     `json:"queue"`
	State  task.State `json:"state"`
	Joined bool       `json:"joined"`
}

func showSubmitted(env *Env, s client.Submitted) error {
	if env.JSON {
		return screen.WriteJSON(env.Out, submittedJSON{ID: s.ID, Queue: s.ID.Queue, State: s.State, Joined: s.Joined})
	}
	_, err := fmt.Fprintln(env.Out, screen.Clean(s.ID.String()))
	return err
}

// withWaitHint replaces the error for a word that is no part of a payload when it is the time of a --wait without "=".
func withWaitHint(args *Args, err error) error {
	if !args.Has("wait") || args.Text("wait") != "" {
		return err
	}
	for _, word := range args.Words {
		if d, notTime := time.ParseDuration(word); notTime == nil && d > 0 {
			return usageError("--wait takes its time behind an equals sign: --wait=%s", word)
		}
	}
	return err
}

// withQueueHint adds to the error for an unknown queue which there are, if the manager says so.
func withQueueHint(ctx context.Context, env *Env, queue string, err error) error {
	if !errors.Is(err, client.ErrUnknownQueue) {
		return err
	}
	names := namesNow(ctx, env)
	if len(names) == 0 {
		return err
	}
	return unknownQueue(ctx, env, queue, names)
}
