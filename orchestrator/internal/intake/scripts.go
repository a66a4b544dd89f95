package intake

import (
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed dequeue.lua
var dequeueSource string

//go:embed settle.lua
var settleSource string

// scripts are the scripts of a lane; each documents its keys and arguments in its own file.
type scripts struct {
	dequeue, settle *redis.Script
}

func newScripts() scripts {
	return scripts{dequeue: redis.NewScript(dequeueSource), settle: redis.NewScript(settleSource)}
}

// Numbers that must be asynq's own (v0.26.0, internal/rdb/rdb.go).
const (
	leaseDuration = 30 * time.Second
	statsKept     = 90 * 24 * time.Hour
	archiveKept   = 90 * 24 * time.Hour
	archiveSize   = 10_000
)
