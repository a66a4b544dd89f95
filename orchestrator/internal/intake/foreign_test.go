package intake_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Tasks of a plain asynq client are served, whatever options they bring; their deadlines and timeouts reach the pool; and one whose
// deadline has passed ends as a dead letter with the reason, and leaves the room that it took.
func TestForeignTasksAreServed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		soon := time.Now().Add(time.Hour).Truncate(time.Second)
		cases := map[string]struct {
			options  []asynq.Option
			deadline func(j *job.Job) bool
		}{
			"plain":              {nil, func(j *job.Job) bool { return j.Deadline.IsZero() && j.Timeout == 30*time.Minute }},
			"timeout":            {[]asynq.Option{asynq.Timeout(time.Minute)}, func(j *job.Job) bool { return j.Deadline.IsZero() && j.Timeout == time.Minute }},
			"deadline":           {[]asynq.Option{asynq.Deadline(soon)}, func(j *job.Job) bool { return j.Deadline.Equal(soon) && j.Timeout == 0 }},
			"timeout-before":     {[]asynq.Option{asynq.Timeout(time.Minute), asynq.Deadline(soon)}, func(j *job.Job) bool { return j.Deadline.Equal(soon) && j.Timeout == time.Minute }},
			"deadline-before":    {[]asynq.Option{asynq.Timeout(2 * time.Hour), asynq.Deadline(soon)}, func(j *job.Job) bool { return j.Deadline.Equal(soon) }},
			"no-retry":           {[]asynq.Option{asynq.MaxRetry(0)}, func(*job.Job) bool { return true }},
			"unique":             {[]asynq.Option{asynq.Unique(time.Hour)}, func(*job.Job) bool { return true }},
			"retention":          {[]asynq.Option{asynq.Retention(time.Hour)}, func(*job.Job) bool { return true }},
			"later":              {[]asynq.Option{asynq.ProcessIn(time.Second)}, func(*job.Job) bool { return true }},
			"passed":             {[]asynq.Option{asynq.Deadline(time.Now().Add(-time.Hour))}, nil},
			"passed-and-unique":  {[]asynq.Option{asynq.Deadline(time.Now().Add(-time.Hour)), asynq.Unique(time.Hour)}, nil},
			"passed-no-retry":    {[]asynq.Option{asynq.Deadline(time.Now().Add(-time.Hour)), asynq.MaxRetry(0)}, nil},
			"passed-kept":        {[]asynq.Option{asynq.Deadline(time.Now().Add(-time.Hour)), asynq.Retention(time.Hour)}, nil},
			"headers-do-no-harm": {[]asynq.Option{asynq.MaxRetry(25)}, func(*job.Job) bool { return true }},
		}
		var mu sync.Mutex
		ran := map[string]*job.Job{}
		m := start(t, b.client, 2, 0, func(r *run) job.Outcome {
			mu.Lock()
			defer mu.Unlock()
			ran[r.ID.Key] = r.Job
			return atOnce(r)
		})
		client := asynq.NewClientFromRedisClient(b.client)
		for id, c := range cases {
			must[*asynq.TaskInfo](t)(client.Enqueue(asynq.NewTask(kind, []byte(`{"id":"`+id+`"}`)), append(c.options, asynq.Queue(queue), asynq.TaskID(id))...))
		}
		until(t, "all are ended", func() bool {
			i := info(t, b.client)
			return i.Pending+i.Active+i.Scheduled+i.Retry == 0
		})
		until(t, "all are settled", func() bool { return m.in.InHand() == 0 })
		mu.Lock()
		defer mu.Unlock()
		for id, c := range cases {
			j := ran[id]
			switch {
			case c.deadline == nil && j != nil:
				t.Errorf("%s ran", id)
			case c.deadline == nil:
				if got := taskInfo(t, b.client, id); got.State != asynq.TaskStateArchived || !strings.Contains(got.LastErr, "deadline") {
					t.Errorf("%s is %s: %s", id, got.State, got.LastErr)
				}
			case j == nil:
				t.Errorf("%s did not run", id)
			case !c.deadline(j):
				t.Errorf("%s has the deadline %s and the timeout %s", id, j.Deadline, j.Timeout)
			case string(j.Payload) != `{"id":"`+id+`"}`:
				t.Errorf("%s has the payload %s", id, j.Payload)
			}
		}
		check(t, m.stop())
		ledger(t, b.client, 0)
	})
}

// A message that nobody can read, or that lies under another task's name, is kept among the dead letters with the reason;
// the tasks behind it run, and no room is lost.
func TestUnreadableMessagesAreBuried(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		ctx, names := t.Context(), task.KeysOf(queue)
		at := time.Now()
		messages := map[string][]byte{
			"noise":       []byte("\xff\xfe\xfd not a message"),
			"empty":       nil,
			"other-key":   task.NewMessage(task.ID{Queue: queue, Key: "else"}, kind, nil, at).Encode(),
			"other-queue": task.NewMessage(task.ID{Queue: "else", Key: "other-queue"}, kind, nil, at).Encode(),
			"bad-kind":    task.NewMessage(task.ID{Queue: queue, Key: "bad-kind"}, "\xff", nil, at).Encode(),
		}
		_, err := b.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			for key, m := range messages {
				p.HSet(ctx, names.Task(key), "msg", m, "state", "pending")
				p.LPush(ctx, names.Pending(), key)
			}
			p.LPush(ctx, names.Pending(), "no-hash")
			return nil
		})
		check(t, err)
		keys := submit(t, b.client, 3)
		m := start(t, b.client, 1, 1, atOnce)
		until(t, "the good ones have run", func() bool { return len(m.pool.taken()) == len(keys) && idle(t, b.client) && m.in.InHand() == 0 })
		if got := m.pool.taken(); len(got) != len(keys) {
			t.Errorf("%v were handed down, want %v", got, keys)
		}
		if n := b.client.ZCard(ctx, names.Archived()).Val(); n != int64(len(messages)) {
			t.Errorf("%d are among the dead letters, want %d", n, len(messages))
		}
		for key := range messages {
			compareRecord(t, b.client, key, task.Dead)
			if end := b.client.HGet(ctx, names.Task(key), task.FieldEnd).Val(); end != "dead" {
				t.Errorf("%s ended as %q", key, end)
			}
		}
		check(t, m.stop())
		ledger(t, b.client, 0)
	})
}

// A task of another kind than its queue's, and one whose payload breaks the schema, never reach the pool: they are dead
// at once, with what is wrong.
func TestRefusedTasks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		lane := intake.Lane{
			Kind: func() string { return kind }, Entry: func() task.Entry { return task.Entry{Queue: queue, Kind: kind} },
			Check: func(payload []byte) error {
				if string(payload) != `{}` {
					return errors.New("n: must be 1")
				}
				return nil
			},
		}
		m := startWith(t, b.client, 1, 1, atOnce, lane)
		client := asynq.NewClientFromRedisClient(b.client)
		for _, c := range []struct{ id, kind, payload string }{{"kind", "else", `{}`}, {"payload", kind, `{"n":2}`}, {"good", kind, `{}`}} {
			must[*asynq.TaskInfo](t)(client.Enqueue(asynq.NewTask(c.kind, []byte(c.payload)), asynq.Queue(queue), asynq.TaskID(c.id)))
		}
		until(t, "all are settled", func() bool { return idle(t, b.client) && m.in.InHand() == 0 })
		for id, want := range map[string]fault.Kind{"kind": fault.UnknownKind, "payload": fault.InvalidPayload} {
			data := must[[]byte](t)(b.client.Get(t.Context(), task.KeysOf(queue).Record(id)).Bytes())
			if got := must[*task.Task](t)(task.DecodeRecord(data)); got.State != task.Dead || got.Fault == nil || got.Fault.Kind != want || !got.Fault.Permanent {
				t.Errorf("%s ended as %s with %+v", id, got.State, got.Fault)
			}
		}
		if got := m.pool.taken(); len(got) != 1 || got[0] != "good" {
			t.Errorf("%v were handed down", got)
		}
	})
}

// idle reports whether nothing waits and nothing has been taken. Between a pull and its answer a task is active and in nobody's hand.
func idle(t testing.TB, client redis.UniversalClient) bool {
	t.Helper()
	i := info(t, client)
	return i.Pending+i.Active == 0
}
