package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// unknownQueue is the failure for a queue that the manager does not serve. Where another one does it says which.
func unknownQueue(ctx context.Context, env *Env, name string, names []string) *ExitError {
	failure := &ExitError{Code: Usage, Kind: "unknown_queue"}
	if others := othersWith(ctx, env, name); len(others) > 0 {
		failure.Message = fmt.Sprintf("%s is a queue of another manager, %s: ask that one, with --socket (this one serves %s)",
			name, strings.Join(others, ", "), strings.Join(names, ", "))
		return failure
	}
	there := "the manager serves no queue"
	if len(names) > 0 {
		there = "there are " + strings.Join(names, ", ")
	}
	failure.Message = fmt.Sprintf("no such queue: %.80q%s (%s)", name, didYouMean(name, names), there)
	return failure
}

// othersWith are the other managers that serve a queue, in words; nothing when the manager does not answer quickly.
func othersWith(ctx context.Context, env *Env, queue string) []string {
	if env.Control == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	answer, err := env.Control.Managers(ctx, &apiv1.ManagersRequest{})
	if err != nil {
		return nil // as in quickStatus
	}
	var others []string
	for _, m := range answer.GetManagers() {
		if m.GetOwn() || !slices.Contains(m.GetQueues(), queue) {
			continue
		}
		text := fmt.Sprintf("%s (pid %d on %s)", m.GetName(), m.GetPid(), m.GetHost())
		if m.GetState() == "absent" {
			text += ", which has not been heard of for " + screen.Duration(time.Duration(m.GetSilentMs())*time.Millisecond)
		}
		others = append(others, screen.Clean(text))
	}
	return others
}
