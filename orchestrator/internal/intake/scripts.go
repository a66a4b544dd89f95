package intake

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
)

//go:embed dequeue.lua
var dequeueSource string

//go:embed settle.lua
var settleSource string

//go:embed renew.lua
var renewSource string

// scripts are the scripts of a lane; each documents its keys and arguments in its own file.
type scripts struct {
	dequeue, settle, renew script
}

func newScripts(rdb redis.UniversalClient) scripts {
	return scripts{dequeue: newScript(rdb, dequeueSource), settle: newScript(rdb, settleSource), renew: newScript(rdb, renewSource)}
}

// Numbers that must be asynq's own (v0.26.0, internal/rdb/rdb.go). Its bound of 10,000 dead letters a queue is not taken over: a flood of
// them would push out older ones that nobody has seen yet.
const (
	leaseDuration = 30 * time.Second
	statsKept     = 90 * 24 * time.Hour
	archiveKept   = 90 * 24 * time.Hour
	// archiveSweep bounds the dead letters that one script deletes because they are too old: it holds Redis up meanwhile.
	archiveSweep = 1000
)

// script is one script. Unlike redis.Script it is sent once: whether a call whose answer was lost is to be repeated is
// decided by who called, because the repetition of a dequeue that was carried out would take other tasks.
type script struct {
	source, hash string
}

func newScript(rdb redis.UniversalClient, source string) script {
	return script{source: broker.Source(rdb, source), hash: broker.Script(rdb, source).Hash()}
}

// run runs the script.
func (s script) run(ctx context.Context, client redis.UniversalClient, keys []string, args []any) *redis.Cmd {
	const fixed = 3 // command, script, number of keys
	all := make([]any, 0, fixed+len(keys)+len(args))
	all = append(all, "evalsha", s.hash, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	all = append(all, args...)
	cmd := send(ctx, client, all, fixed)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		all[0], all[1] = "eval", s.source
		cmd = send(ctx, client, all, fixed)
	}
	return cmd
}

func send(ctx context.Context, client redis.UniversalClient, args []any, firstKey int8) *redis.Cmd {
	cmd := once{redis.NewCmd(ctx, args...)}
	cmd.SetFirstKeyPos(firstKey)
	_ = client.Process(ctx, cmd) // the command has its error
	return cmd.Cmd
}

// once is a command that the client does not repeat.
type once struct{ *redis.Cmd }

// NoRetry tells the client so.
func (once) NoRetry() bool { return true }
