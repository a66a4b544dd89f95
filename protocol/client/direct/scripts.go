package direct

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/task"
)

// replicaTimeout bounds how long a submit waits for replicas.
const replicaTimeout = time.Second

// scripts are the client's scripts; each documents its keys and arguments where it is written.
type scripts struct{ submit, turn, peek, cancel *redis.Script }

func scriptsFor(rdb redis.UniversalClient) scripts {
	return scripts{
		submit: broker.Script(rdb, submitSource), turn: broker.Script(rdb, turnSource), peek: broker.Script(rdb, peekSource),
		cancel: broker.Script(rdb, cancelSource),
	}
}

// call is one run of a script.
type call struct {
	keys []string
	args []any
}

// runAll runs a script many times in one round trip; in a Cluster in one to each node. Those that a node does not know the script for are
// sent again with its text, and only those: the others have been carried out. Each command has its own error.
func runAll(ctx context.Context, rdb redis.Cmdable, script *redis.Script, calls []call) []*redis.Cmd {
	commands := make([]*redis.Cmd, len(calls))
	every := make([]int, len(calls))
	for i := range calls {
		every[i] = i
	}
	send := func(places []int, run func(pipe redis.Pipeliner, c call) *redis.Cmd) {
		_, _ = rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // the commands have their errors
			for _, i := range places {
				commands[i] = run(pipe, calls[i])
			}
			return nil
		})
	}
	send(every, func(pipe redis.Pipeliner, c call) *redis.Cmd {
		return pipe.EvalSha(ctx, script.Hash(), c.keys, c.args...)
	})
	var unknown []int
	for i, command := range commands {
		if redis.HasErrorPrefix(command.Err(), "NOSCRIPT") {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) > 0 {
		send(unknown, func(pipe redis.Pipeliner, c call) *redis.Cmd { return script.Eval(ctx, pipe, c.keys, c.args...) })
	}
	return commands
}

func firstError(commands []*redis.Cmd) error {
	for _, command := range commands {
		if err := command.Err(); err != nil {
			return err
		}
	}
	return nil
}

// replicated runs a write to a queue and, when that is asked for, waits until enough replicas have it.
func (c *Client) replicated(ctx context.Context, queue string, write func(redis.Cmdable) error) error {
	if c.replicas == 0 {
		return write(c.rdb)
	}
	// Redis waits for what was written on the same connection. A watch is what go-redis keeps a connection for, to the right node.
	return c.rdb.Watch(ctx, func(tx *redis.Tx) error {
		if err := write(tx); err != nil {
			return err
		}
		n, err := tx.Wait(ctx, c.replicas, replicaTimeout).Result()
		if err == nil && n < int64(c.replicas) {
			err = fmt.Errorf("the primary has it, but within %s only %d replicas of %d: it may be lost if the primary dies now; submit it again to be sure", replicaTimeout, n, c.replicas)
		}
		return err
	}, task.KeysOf(queue).Entry())
}
