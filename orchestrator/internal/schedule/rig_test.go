package schedule_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/schedule"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

const (
	queue = "q"
	name  = "tick"
	// within bounds every wait of a test.
	within = 20 * time.Second
)

// rig is a Redis with a queue that a manager has announced, and schedules in any number of managers.
type rig struct {
	t     *testing.T
	redis *testenv.Redis
	rdb   *redis.Client
	keys  task.Keys

	mu      sync.Mutex
	decided []schedule.Decided
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, redis: testenv.StartRedis(t, testenv.RedisOptions{AppendOnly: true}), keys: task.KeysOf(queue)}
	r.rdb = r.connect(t)
	r.announce(task.Entry{Queue: queue, Kind: "tick"})
	return r
}

func (r *rig) connect(t *testing.T) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr(), ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func (r *rig) announce(e task.Entry) {
	r.t.Helper()
	data, err := task.EncodeEntry(e)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.rdb.Set(r.t.Context(), r.keys.Entry(), data, 0).Err(); err != nil {
		r.t.Fatal(err)
	}
}

// manager is one that has schedules.
type manager struct {
	*schedule.Schedules
	mu    sync.Mutex
	specs []schedule.Spec
	end   func()
}

// start runs the schedules of a manager; end ends it as a stop does.
func (r *rig) start(by string, specs ...schedule.Spec) *manager {
	r.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr(), ContextTimeoutEnabled: true, DialerRetries: 1})
	tasks := direct.New(rdb, slog.New(slog.DiscardHandler))
	m := &manager{specs: specs}
	m.Schedules = schedule.New(schedule.Deps{
		Manager: by, Redis: rdb, Tasks: tasks, Log: slog.New(slog.DiscardHandler),
		Specs: func() []schedule.Spec {
			m.mu.Lock()
			defer m.mu.Unlock()
			return slices.Clone(m.specs)
		},
		Told: func(d schedule.Decided) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.decided = append(r.decided, d)
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = m.Run(ctx) })
	m.end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		_ = tasks.Close()
		_ = rdb.Close()
	})
	r.t.Cleanup(m.end)
	return m
}

// change gives a manager other schedules, as a reload does.
func (m *manager) change(specs ...schedule.Spec) {
	m.mu.Lock()
	m.specs = specs
	m.mu.Unlock()
	m.Kick()
}

// spec is a schedule with settings as a person writes them, beside those of every second.
func spec(t *testing.T, layer settings.Layer) schedule.Spec {
	t.Helper()
	all := settings.Layer{"every": "1s"}
	maps.Copy(all, layer)
	s, err := settings.ResolveSchedule(all)
	if err != nil {
		t.Fatal(err)
	}
	return schedule.Spec{Name: name, Queue: queue, Schedule: s}
}

func (r *rig) look(s schedule.Spec) schedule.State {
	r.t.Helper()
	state, err := schedule.New(schedule.Deps{Redis: r.rdb}).Look(r.t.Context(), s)
	if err != nil {
		r.t.Fatal(err)
	}
	return state
}

// submitted are the due times whose runs lie in the queue, in their order, each as often as it does.
func (r *rig) submitted() []time.Time {
	r.t.Helper()
	var dues []time.Time
	for _, key := range r.rdb.LRange(r.t.Context(), r.keys.Pending(), 0, -1).Val() {
		if of, due, ok := (task.ID{Queue: queue, Key: key}).Schedule(); ok && of == name {
			dues = append(dues, due)
		}
	}
	slices.SortFunc(dues, time.Time.Compare)
	return dues
}

// end ends the run of a task as a manager does that has run it.
func (r *rig) end(id task.ID) {
	r.t.Helper()
	ctx := r.t.Context()
	if err := r.rdb.LRem(ctx, r.keys.Pending(), 0, id.Key).Err(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.rdb.Del(ctx, r.keys.Task(id.Key)).Err(); err != nil {
		r.t.Fatal(err)
	}
}

// ago makes it as if all up to that long ago were decided and nothing since.
func (r *rig) ago(d time.Duration) {
	r.t.Helper()
	at := r.rdb.Time(r.t.Context()).Val().Add(-d)
	if err := r.rdb.HSet(r.t.Context(), r.keys.Schedule(name), task.ScheduleDecided, strconv.FormatInt(at.UnixMilli(), 10)).Err(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) told() []schedule.Decided {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.decided)
}

func (r *rig) eventually(what string, is func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(within); !is(); {
		if time.Now().After(deadline) {
			r.t.Fatalf("not within %s: %s\ndecided: %s", within, what, r.story())
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // between two looks
	}
}

func (r *rig) story() string {
	text := ""
	for _, d := range r.told() {
		text += fmt.Sprintf("%s %s missed %d; ", d.Due.UTC().Format("15:04:05"), d.Verdict, d.Missed)
	}
	return text
}
