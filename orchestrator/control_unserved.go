package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/roster"
	"github.com/drover-jobs/drover/protocol/task"
)

// unservedShown is how many queues that nobody serves are named.
const unservedShown = 5

// unserved looks for tasks in queues that none of the managers which are there serves.
func (e *examination) unserved(ctx context.Context, managers []roster.Manager) {
	served := map[string]bool{}
	for _, m := range managers {
		if m.Absent() {
			continue
		}
		for _, q := range m.Queues {
			served[q] = true
		}
	}
	for _, q := range sortedKeys(e.o.present.Load().queues) { // the list of managers may be older
		served[q] = true
	}
	names, err := e.o.redis.SMembers(ctx, task.AsynqQueuesKey).Result()
	if err != nil {
		e.add("queues", nothingFound, "", "%v", err)
		return
	}
	names = slices.DeleteFunc(names, func(q string) bool { return served[q] })
	slices.Sort(names)
	waiting, err := e.waitingIn(ctx, names)
	if err != nil {
		e.add("queues", nothingFound, "", "%v", err)
		return
	}
	var found []string
	for i, q := range names {
		if waiting[i] > 0 {
			found = append(found, fmt.Sprintf("%s (%d)", q, waiting[i]))
		}
	}
	if len(found) == 0 {
		e.add("queues", wellFound, "", "no task waits in a queue that nobody serves")
		return
	}
	more := ""
	if n := len(found) - unservedShown; n > 0 {
		found, more = found[:unservedShown], fmt.Sprintf(", and %d more", n)
	}
	e.add("queues", doubtFound, "start a manager that serves them, or give this one the queue (in the configuration, then reload)",
		"tasks wait in queues that no manager serves: %s%s", strings.Join(found, ", "), more)
}

// waitingIn counts the tasks of each queue that wait for their first or their next run.
func (e *examination) waitingIn(ctx context.Context, queues []string) ([]int64, error) {
	counts := make([][3]*redis.IntCmd, len(queues))
	pipe := e.o.redis.Pipeline()
	for i, q := range queues {
		keys := task.KeysOf(q)
		counts[i] = [3]*redis.IntCmd{pipe.LLen(ctx, keys.Pending()), pipe.ZCard(ctx, keys.Scheduled()), pipe.ZCard(ctx, keys.Retry())}
	}
	if len(queues) > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, fmt.Errorf("count what waits: %w", err)
		}
	}
	waiting := make([]int64, len(queues))
	for i, c := range counts {
		waiting[i] = c[0].Val() + c[1].Val() + c[2].Val()
	}
	return waiting, nil
}

// deaths looks for dead letters of this manager's queues that cannot be told of.
func (e *examination) deaths(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	for _, q := range sortedKeys(e.o.present.Load().queues) {
		problem := e.o.hooks.Problem(q)
		if problem == nil {
			continue
		}
		if n, err := e.o.redis.LLen(ctx, task.KeysOf(q).Deaths()).Result(); err == nil && n > 0 {
			e.add("on_dead of "+q, doubtFound, "start a manager that serves that queue, mend the schema of its worker so that it allows the field dead_letter, or set on_dead to another queue; unset drops what waits",
				"%d deaths wait to be told: %v", n, problem)
		}
	}
}
