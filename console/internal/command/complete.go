package command

import (
	"context"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"

	"github.com/drover-jobs/drover/protocol/task"
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

// completeTask offers the tasks that were seen lately, "queue:" for the beginning of an ID, and behind it the latest tasks of that queue in
// the states in which a command has a use for them.
func completeTask(states ...task.State) func(ctx context.Context, env *Env, words []string) []string {
	return func(ctx context.Context, env *Env, words []string) []string {
		if len(words) == 0 {
			return nil
		}
		offers := env.Seen.recent()
		queue, _, behind := strings.Cut(words[len(words)-1], ":")
		if behind {
			return append(offers, tasksNow(ctx, env, queue, states)...)
		}
		for _, name := range namesNow(ctx, env) {
			offers = append(offers, name+":")
		}
		return offers
	}
}

// offeredTasks is how many tasks of a state are offered: no more than a person looks through.
const offeredTasks = 20

// tasksNow are the IDs of tasks of a queue in these states, of a manager that answers quickly.
func tasksNow(ctx context.Context, env *Env, queue string, states []task.State) []string {
	if env.Control == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	var ids []string
	for _, state := range states {
		answer, err := env.Control.ListTasks(ctx, &apiv1.ListTasksRequest{Queue: queue, State: taskv1.State(state), Limit: offeredTasks})
		if err != nil {
			return ids // as in quickStatus
		}
		for _, t := range answer.GetTasks() {
			ids = append(ids, t.GetId())
		}
	}
	return ids
}

// completeWorker offers the numbers of the workers.
func completeWorker(ctx context.Context, env *Env, words []string) []string {
	if len(words) != 1 {
		return nil
	}
	return workerNumbers(quickStatus(ctx, env).GetWorkers())
}

// flagQueue offers the manager's queues for the value of a flag.
func flagQueue(ctx context.Context, env *Env) []string { return namesNow(ctx, env) }

// namesNow is the manager's queues, or nothing when it does not answer quickly.
func namesNow(ctx context.Context, env *Env) []string {
	return queueNames(quickStatus(ctx, env).GetQueues())
}

// quickStatus is the status of a manager that answers quickly; nil else: completion has nobody to tell, the command itself
// will say what is wrong.
func quickStatus(ctx context.Context, env *Env) *apiv1.StatusResponse {
	if env.Control == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	s, err := env.Control.Status(ctx, &apiv1.StatusRequest{})
	if err != nil {
		return nil
	}
	return s
}

func queueNames(queues []*apiv1.Queue) []string {
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.GetName()
	}
	return names
}

// listable are the states in which tasks can be listed.
func listable() []task.State {
	return []task.State{task.Running, task.Held, task.Waiting, task.Failed, task.Dead, task.Quarantined, task.Expired}
}

func stateNames(states []task.State) []string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.String()
	}
	return names
}
