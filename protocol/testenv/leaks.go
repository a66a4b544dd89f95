package testenv

import "go.uber.org/goleak"

// LateDials leaves out of a search for leaked goroutines those with which go-redis tries to reach a server that is away: when its client
// is closed, each of them still sleeps for up to a second before it ends (go-redis v9.23.0, internal/pool/pool.go).
func LateDials() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
}
