package ledger_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/orchestrator/internal/ledger"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LateDials()) }

const queue = "q"

// rig is a Redis with a queue, and a ledger on it.
type rig struct {
	t         *testing.T
	server    *testenv.Redis // nil for miniredis
	rdb       *redis.Client
	keys      task.Keys
	ledger    *ledger.Ledger
	tasks     *direct.Client
	inspector *asynq.Inspector
	foreign   *asynq.Client
}

// both runs a test on a redis-server and on the Redis that a manager can be itself.
func both(t *testing.T, body func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		server := testenv.StartRedis(t, testenv.RedisOptions{})
		r := newRig(t, server.Addr())
		r.server = server
		body(t, r)
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		body(t, newRig(t, miniredis.RunT(t).Addr()))
	})
}

func newRig(t *testing.T, addr string) *rig {
	t.Helper()
	r := &rig{t: t, keys: task.KeysOf(queue), rdb: redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})}
	r.tasks = direct.New(r.rdb, slog.New(slog.DiscardHandler))
	r.inspector = asynq.NewInspectorFromRedisClient(r.rdb)
	r.foreign = asynq.NewClientFromRedisClient(r.rdb)
	t.Cleanup(func() {
		_ = r.tasks.Close()
		_ = r.rdb.Close()
	})
	entry, err := task.EncodeEntry(task.Entry{Queue: queue, Kind: "kind"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.rdb.Set(t.Context(), r.keys.Entry(), entry, 0).Err(); err != nil {
		t.Fatal(err)
	}
	r.ledger = ledger.New(ledger.Deps{Redis: r.rdb, Manager: "here", Retention: func(string) time.Duration { return time.Minute }})
	r.ledger.Patient(20 * time.Second)
	return r
}

// submit submits n tasks and returns their IDs in the order in which they will run.
func (r *rig) submit(n int, options ...client.Option) []task.ID {
	r.t.Helper()
	ids := make([]task.ID, n)
	for i := range ids {
		s, err := r.tasks.Submit(r.t.Context(), queue, map[string]any{"n": i, "of": n}, options...)
		if err != nil {
			r.t.Fatal(err)
		}
		ids[i] = s.ID
	}
	return ids
}

// bury makes dead letters of waiting tasks, as a manager leaves them.
func (r *rig) bury(at time.Time, end task.State, died fault.Kind, ids ...task.ID) {
	r.t.Helper()
	history, err := task.EncodeHistory([]task.Attempt{{Number: 5, Manager: "old", End: task.EndFailed, Message: "why"}})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, id := range ids {
		encoded, err := r.rdb.HGet(r.t.Context(), r.keys.Task(id.Key), "msg").Bytes()
		if err != nil {
			r.t.Fatal(err)
		}
		message, err := task.DecodeMessage(encoded)
		if err != nil {
			r.t.Fatal(err)
		}
		message.Retried, message.ErrorMsg, message.LastFailedAt = 5, fmt.Sprintf("%s: why", died), at.Unix()
		record, err := task.EncodeRecord(&task.Task{ID: id, State: end, Attempts: 5})
		if err != nil {
			r.t.Fatal(err)
		}
		_, err = r.rdb.Pipelined(r.t.Context(), func(pipe redis.Pipeliner) error {
			pipe.LRem(r.t.Context(), r.keys.Pending(), 0, id.Key)
			pipe.ZAdd(r.t.Context(), r.keys.Archived(), redis.Z{Score: float64(at.Unix()), Member: id.Key})
			pipe.HSet(r.t.Context(), r.keys.Task(id.Key), "msg", message.Encode(), "state", "archived", task.FieldEnd, end.String(),
				task.FieldFailures, 5, task.FieldKills, 1, task.FieldHistory, history)
			pipe.Set(r.t.Context(), r.keys.Record(id.Key), record, time.Hour)
			return nil
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// fail makes failed tasks of waiting ones, due at the given time.
func (r *rig) fail(due time.Time, ids ...task.ID) {
	r.t.Helper()
	for i, id := range ids {
		_, err := r.rdb.Pipelined(r.t.Context(), func(pipe redis.Pipeliner) error {
			pipe.LRem(r.t.Context(), r.keys.Pending(), 0, id.Key)
			pipe.ZAdd(r.t.Context(), r.keys.Retry(), redis.Z{Score: float64(due.Unix() + int64(i)), Member: id.Key})
			pipe.HSet(r.t.Context(), r.keys.Task(id.Key), "state", "retry", task.FieldFailures, 2)
			return nil
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// take makes waiting tasks active, the first first, as a manager does.
func (r *rig) take(n int) {
	r.t.Helper()
	for range n {
		key, err := r.rdb.LMove(r.t.Context(), r.keys.Pending(), r.keys.Active(), "RIGHT", "LEFT").Result()
		if err != nil {
			r.t.Fatal(err)
		}
		if err := r.rdb.HSet(r.t.Context(), r.keys.Task(key), "state", "active").Err(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// list returns all pages.
func (r *rig) list(q ledger.Query) (all []*task.Task, total int64) {
	r.t.Helper()
	q.Queue = queue
	for pages := 0; ; pages++ {
		page, err := r.ledger.List(r.t.Context(), q)
		if err != nil {
			r.t.Fatal(err)
		}
		if q.Token == "" {
			total = page.Total
		}
		all = append(all, page.Tasks...)
		if page.Next == "" {
			return all, total
		}
		if q.Token = page.Next; pages > 1000 {
			r.t.Fatal("the list has no end")
		}
	}
}

func idsOf(tasks []*task.Task) []task.ID {
	ids := make([]task.ID, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids
}

func keysOf(ids ...task.ID) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = id.Key
	}
	return keys
}

// follow returns the next events of the queue as they are published.
func (r *rig) follow() func(n int) []*task.Event {
	r.t.Helper()
	ps := r.rdb.Subscribe(r.t.Context(), r.keys.EventsChannel())
	r.t.Cleanup(func() { _ = ps.Close() })
	if _, err := ps.Receive(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return func(n int) []*task.Event {
		r.t.Helper()
		ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
		defer cancel()
		var events []*task.Event
		for len(events) < n {
			m, err := ps.ReceiveMessage(ctx)
			if err != nil {
				r.t.Fatalf("%d of %d events came: %v", len(events), n, err)
			}
			batch, err := task.DecodeEvents([]byte(m.Payload))
			if err != nil {
				r.t.Fatal(err)
			}
			events = append(events, batch...)
		}
		return events
	}
}
