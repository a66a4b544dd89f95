package intake

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/task"
)

// gateway is the Redis client that a lane's asynq.Server works on: the shared client, but for the steps that the lane
// takes over. Everything that is not a script passes through untouched.
type gateway struct {
	redis.UniversalClient
	keys task.Keys
	lane *lane
	none *redis.Client // one that is closed
}

func newGateway(l *lane) *gateway {
	none := redis.NewClient(&redis.Options{})
	_ = none.Close()
	return &gateway{UniversalClient: l.Redis, keys: l.keys, lane: l, none: none}
}

// Subscribe returns a subscription that cannot be had. asynq wants one for its channel of cancels, which is listened to
// here for all lanes on one connection (listen.go); and asynq panics when a subscription ends, as it does when the client is
// closed after a stop that Redis did not allow to end well.
func (g *gateway) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return g.none.Subscribe(ctx, channels...)
}

var _ redis.UniversalClient = (*gateway)(nil)

// EvalSha runs one of asynq's scripts, or answers in its place.
func (g *gateway) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if answer := g.inPlace(ctx, keys); answer != nil {
		return answer
	}
	return g.UniversalClient.EvalSha(ctx, sha, keys, args...)
}

// Eval is EvalSha for a script that Redis does not know yet.
func (g *gateway) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	if answer := g.inPlace(ctx, keys); answer != nil {
		return answer
	}
	return g.UniversalClient.Eval(ctx, script, keys, args...)
}

// inPlace returns the lane's own answer to a script with these keys; nil when the script is to be run.
func (g *gateway) inPlace(ctx context.Context, keys []string) *redis.Cmd {
	if g.isDequeue(keys) {
		answer := redis.NewCmd(ctx)
		msg, err := g.lane.next()
		if err != nil {
			answer.SetErr(err)
		} else {
			answer.SetVal(msg)
		}
		return answer
	}
	key, aboutTask := taskOf(g.keys, keys)
	switch {
	case !aboutTask:
		return nil
	case endsRun(ctx):
		g.lane.runEnded(key)
	case !g.lane.hand.holds(key):
		return nil // its manager has died
	}
	return redis.NewCmdResult("OK", nil)
}

// isDequeue knows asynq's dequeueCmd by its keys: pending, paused, active, lease.
func (g *gateway) isDequeue(keys []string) bool {
	return len(keys) == 4 && keys[0] == g.keys.Pending() && keys[1] == g.keys.Paused()
}

// taskOf returns the task that a script is about: asynq names the task's hash among the keys of every script that moves an active one.
func taskOf(names task.Keys, keys []string) (string, bool) {
	for _, k := range keys {
		if key, ok := strings.CutPrefix(k, names.TaskPrefix()); ok && key != "" {
			return key, true
		}
	}
	return "", false
}

// endsRun tells the end of a run by asynq's processor, whose calls may last as long as the task's lease, from what its
// recoverer does with the tasks of dead managers, which has no deadline.
func endsRun(ctx context.Context) bool {
	_, ok := ctx.Deadline()
	return ok
}
