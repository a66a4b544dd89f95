package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/task"
)

// What retry and drop share: which tasks are meant, and how the answer is told.

const (
	// moveTime bounds the move of a part of the dead letters of a queue, or of all tasks that are named.
	moveTime = 10 * time.Minute
	// partOfDead is how many dead letters are moved with one request: what was moved is known when a person interrupts it.
	partOfDead = 1000
)

func selectionFlags(verb string) []Flag {
	flags := []Flag{{Name: "dead", Value: "QUEUE", Help: verb + " all dead letters of QUEUE, or those that the filters choose", Complete: flagQueue}}
	flags = append(flags, filterFlags("with --dead: ")...)
	return append(flags, Flag{Name: "dry-run", Help: "with --dead: say how many it would be, only"})
}

// selectionOf reads which tasks a command line names. Its errors are of usage.
func selectionOf(env *Env, args *Args) (*apiv1.TaskSelection, error) {
	filter, err := filterOf(env, args)
	if err != nil {
		return nil, err
	}
	queue := args.Text("dead")
	switch {
	case queue != "" && len(args.Words) > 0:
		return nil, usageError("name tasks or --dead QUEUE, not both: %.60q is not needed", args.Words[0])
	case queue != "":
		return &apiv1.TaskSelection{Dead: &apiv1.DeadSelection{Queue: queue, Filter: filter, DryRun: args.Has("dry-run"), Limit: partOfDead}}, nil
	case filter != nil || args.Has("dry-run"):
		i := slices.IndexFunc(selectionFlags(""), func(f Flag) bool { return args.Has(f.Name) })
		return nil, usageError("--%s goes with --dead QUEUE", selectionFlags("")[i].Name)
	case len(args.Words) == 0:
		return nil, usageError("which tasks? Name IDs, or --dead QUEUE for all its dead letters")
	}
	ids, err := parseIDs(args.Words)
	if err != nil {
		return nil, err
	}
	selection := &apiv1.TaskSelection{}
	for _, id := range ids {
		selection.Ids = append(selection.Ids, id.String())
	}
	return selection, nil
}

// moved is what the manager answers to a move.
type moved interface {
	GetChanges() []*apiv1.TaskChange
	GetChanged() int64
	GetNextPageToken() string
}

// move asks for a move, part by part, and tells what became of the tasks; done is the word for one that was moved. When it is interrupted it
// says how many were moved before.
func move[A moved](ctx context.Context, env *Env, selection *apiv1.TaskSelection, done string, request func(context.Context) (A, error)) error {
	dead := selection.GetDead()
	var refused []*apiv1.TaskChange
	var changed int64
	for {
		answer, err := request(ctx)
		if err != nil {
			if changed > 0 && !dead.GetDryRun() {
				err = errors.Join(env.tell(fmt.Sprintf("Before that at least %s of %s: %s.", deadLetters(changed), screen.Clean(dead.GetQueue()), done)), err)
			}
			return aboutQueue(ctx, env, dead.GetQueue(), err)
		}
		refused = append(refused, answer.GetChanges()...)
		changed += answer.GetChanged()
		if answer.GetNextPageToken() == "" {
			break
		}
		dead.PageToken = answer.GetNextPageToken()
	}
	if dead.GetDryRun() {
		done = "would be " + done
	}
	return showMoves(env, dead.GetQueue(), done, refused, changed)
}

type movedJSON struct {
	ID      string     `json:"id"`
	State   task.State `json:"state"`
	Refused string     `json:"refused,omitempty"`
}

type movesJSON struct {
	Changed int64       `json:"changed"`
	Tasks   []movedJSON `json:"tasks"`
}

// showMoves tells what became of the tasks; done is the word for one that was moved. The exit code is 1 when one was refused.
func showMoves(env *Env, queue, done string, changes []*apiv1.TaskChange, changed int64) error {
	view := movesJSON{Changed: changed, Tasks: make([]movedJSON, 0, len(changes))}
	worst := Done
	for _, c := range changes {
		view.Tasks = append(view.Tasks, movedJSON{ID: c.GetId(), State: task.State(c.GetState()), Refused: c.GetRefused()})
		text := done
		if c.GetRefused() != "" {
			worst = Failed
			text = "refused: " + screen.Clean(c.GetRefused())
		}
		if id, err := task.ParseID(c.GetId()); err == nil {
			env.Seen.add(id)
		}
		if env.JSON {
			continue
		}
		if _, err := fmt.Fprintf(env.Out, "%s  %s\n", screen.Clean(c.GetId()), text); err != nil {
			return err
		}
	}
	if env.JSON {
		if err := screen.WriteJSON(env.Out, view); err != nil {
			return err
		}
	} else if queue != "" {
		if _, err := fmt.Fprintf(env.Out, "%s of %s: %s\n", deadLetters(changed), screen.Clean(queue), done); err != nil {
			return err
		}
	}
	return told(worst)
}

func deadLetters(n int64) string { return screen.Things(n, "dead letter") }

// deadCount says how many dead letters a queue has; without a number for one of another manager.
func deadCount(ctx context.Context, env *Env, queue string) (string, error) {
	s, err := status(ctx, env)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(s.GetQueues(), func(q *apiv1.Queue) bool { return q.GetName() == queue })
	switch {
	case i >= 0:
		return deadLetters(s.GetQueues()[i].GetDead()), nil
	case len(othersWith(ctx, env, queue)) > 0:
		return "dead letters", nil
	default:
		return "", unknownQueue(ctx, env, queue, queueNames(s.GetQueues()))
	}
}
