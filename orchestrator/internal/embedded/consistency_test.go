package embedded_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
)

// A snapshot is one point in time: while scripts move items between lists and a set as fast as
// they can, each of hundreds of different snapshots holds all items.
func TestSnapshotsAreOnePointInTime(t *testing.T) {
	t.Parallel()
	const (
		items     = 200
		lists     = 24
		movers    = 4
		snapshots = 300
	)
	b := start(t, embedded.Options{Dir: t.TempDir(), SnapshotEvery: time.Millisecond})
	c := b.client(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range items {
		if err := c.RPush(ctx, "list:0", i).Err(); err != nil {
			t.Fatal(err)
		}
	}
	move := redis.NewScript(`
		local item = redis.call("LPOP", KEYS[1])
		if not item then return 0 end
		redis.call("SREM", KEYS[3], item)
		redis.call("SADD", KEYS[3], item)
		redis.call("RPUSH", KEYS[2], item)
		return 1`)
	moved := make(chan struct{}, 1)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for m := range movers {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				// The names make the walk come by the source before and after the target.
				from, to := fmt.Sprintf("list:%d", (i*7+m)%lists), fmt.Sprintf("list:%d", (i*5+3*m+1)%lists)
				if err := move.Run(ctx, c, []string{from, to, "seen"}, i).Err(); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				select {
				case moved <- struct{}{}:
				default:
				}
			}
		})
	}
	different := map[string]struct{}{}
	for n := 0; len(different) < snapshots; n++ {
		<-moved
		body, _, err := b.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		different[string(body)] = struct{}{}
		sizes, err := embedded.Lists(body)
		if err != nil {
			t.Fatal(err)
		}
		delete(sizes, "seen")
		sum := 0
		for _, size := range sizes {
			sum += size
		}
		if sum != items {
			t.Fatalf("snapshot %d holds %d items of %d", n, sum, items)
		}
	}
}
