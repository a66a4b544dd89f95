package command

import (
	"context"
	"fmt"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// tellJoined says, beside the answer, that the work is a task already, and what is ignored for that.
func tellJoined(ctx context.Context, env *Env, s client.Submitted, args *Args) error {
	if !s.Joined || env.JSON {
		return nil
	}
	text := "The same work " + joinedText(env, s.State, current(ctx, env, s.ID))
	if args.Has("in") {
		text += ", and the new --in " + screen.Clean(args.Text("in")) + " is ignored"
	}
	this := "this is its ID"
	if args.Has("wait") {
		this = "this waits for it"
	}
	return env.tell(fmt.Sprintf("%s; %s. --again makes a task of its own.", text, this))
}

// joinedText says where the task is that was joined, which was in a state then. t is what is known of it now; it may have
// gone on.
func joinedText(env *Env, state task.State, t *task.Task) string {
	same := t.State == state
	switch state {
	case task.Failed:
		again := ""
		if same && !t.RunAt.IsZero() {
			again = " " + inTime(env, t)
		}
		return "failed " + howOften(t.Counters.Failures+t.Counters.Kills) + "and will be tried again" + again
	case task.Waiting:
		if same && t.RunAt.After(env.Now()) {
			return "is already waiting and due " + inTime(env, t)
		}
		return "is already waiting"
	case task.Held:
		return "is already waiting for a free worker"
	default:
		return "is already " + state.String()
	}
}

// howOften is a number of times with a space behind it; empty when it is not known.
func howOften(n int) string {
	switch {
	case n <= 0:
		return ""
	case n == 1:
		return "once "
	default:
		return fmt.Sprintf("%d times ", n)
	}
}
