package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// completionTime bounds how long a person who asks for completion waits for the manager.
const completionTime = 500 * time.Millisecond

// completeQueue offers the manager's queues for the first word behind a command.
func completeQueue(ctx context.Context, env *Env, words []string) []string {
	if len(words) != 1 {
		return nil
	}
	return namesNow(ctx, env)
}

// completeTask offers "queue:" for the beginning of a task ID.
func completeTask(ctx context.Context, env *Env, words []string) []string {
	if len(words) == 0 || strings.Contains(words[len(words)-1], ":") {
		return nil
	}
	offers := namesNow(ctx, env)
	for i := range offers {
		offers[i] += ":"
	}
	return offers
}

// namesNow is the manager's queues, or nothing when it does not answer quickly.
func namesNow(ctx context.Context, env *Env) []string {
	if env.Control == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	s, err := env.Control.Status(ctx, &apiv1.StatusRequest{})
	if err != nil {
		return nil // completion has nobody to tell; the command itself will say it
	}
	return queueNames(s.GetQueues())
}

func queueNames(queues []*apiv1.Queue) []string {
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.GetName()
	}
	return names
}

// unknownQueue is the failure for a queue that is not there.
func unknownQueue(name string, names []string) *ExitError {
	there := "the manager serves no queue"
	if len(names) > 0 {
		there = "there are " + strings.Join(names, ", ")
	}
	return &ExitError{Code: Usage, Kind: "unknown_queue",
		Message: fmt.Sprintf("no such queue: %.80q%s (%s)", name, didYouMean(name, names), there)}
}
