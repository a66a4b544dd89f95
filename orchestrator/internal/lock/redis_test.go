package lock_test

import (
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A Redis that keeps its content over a crash keeps its locks, with the time that they had left; one that does not, says
// at the renewal that they are gone.
func TestRedisRestart(t *testing.T) {
	t.Parallel()
	for name, keeps := range map[string]bool{"append-only": true, "in memory": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testenv.StartRedis(t, testenv.RedisOptions{AppendOnly: keeps})
			r := newRig(t, "redis", s)
			k, token := key(t, "one"), lock.NewToken()
			if held, _, err := r.store.Acquire(t.Context(), k, token, long, holder("a")); err != nil || !held {
				t.Fatal(held, err)
			}
			s.Kill()
			s.Start()
			eventually(t, patience, "Redis answers", func() bool {
				renewal := r.bare.Renew(t.Context(), []lock.Lease{{Key: k, Token: token}}, long)[0]
				if renewal.Err == nil && renewal.Still != keeps {
					t.Errorf("still held: %v, want %v", renewal.Still, keeps)
				}
				return renewal.Err == nil
			})
		})
	}
}
