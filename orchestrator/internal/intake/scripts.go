package intake

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"
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

func newScripts() scripts {
	return scripts{dequeue: newScript(dequeueSource), settle: newScript(settleSource), renew: newScript(renewSource)}
}

// Numbers that must be asynq's own (v0.26.0, internal/rdb/rdb.go).
const (
	leaseDuration = 30 * time.Second
	statsKept     = 90 * 24 * time.Hour
	archiveKept   = 90 * 24 * time.Hour
	archiveSize   = 10_000
)

// script is one script. Unlike redis.Script it is sent once: whether a call whose answer was lost is to be repeated is
// decided by who called, because the repetition of a dequeue that was carried out would take other tasks.
type script struct {
	source, hash string
}

func newScript(source string) script {
	return script{source: source, hash: redis.NewScript(source).Hash()}
}

// run runs the script.
func (s script) run(ctx context.Context, client redis.UniversalClient, keys []string, args []any) *redis.Cmd {
	cmd := s.send(ctx, client, "evalsha", s.hash, keys, args)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = s.send(ctx, client, "eval", s.source, keys, args)
	}
	return cmd
}

func (s script) send(ctx context.Context, client redis.UniversalClient, how, what string, keys []string, args []any) *redis.Cmd {
	const fixed = 3 // command, script, number of keys
	all := make([]any, 0, fixed+len(keys)+len(args))
	all = append(all, how, what, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	cmd := once{redis.NewCmd(ctx, append(all, args...)...)}
	cmd.SetFirstKeyPos(fixed)
	_ = client.Process(ctx, cmd) // the command has its error
	return cmd.Cmd
}

// once is a command that the client does not repeat.
type once struct{ *redis.Cmd }

// NoRetry tells the client so.
func (once) NoRetry() bool { return true }
