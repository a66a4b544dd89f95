package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// Each task that dies is told of as a task in the queue of on_dead, with what it was and why it died, although the manager is killed
// in between and that queue comes late.
func TestDeathsAreTold(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_failures: 1, max_kills: 1, on_dead: mails").start()
	options, err := redis.ParseURL(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	c := m.connect(t)
	ends := map[string]task.State{}
	for _, d := range []struct {
		payload map[string]any
		options []client.Option
		end     task.State
	}{
		{map[string]any{"do": "fail", "note": "no paper"}, nil, task.Dead},
		{map[string]any{"do": "exit", "code": 3}, nil, task.Quarantined},
		{map[string]any{"do": "return"}, []client.Option{client.Deadline(time.Now().Add(-time.Minute))}, task.Expired},
		{map[string]any{"do": "return", "value": 1}, nil, task.Completed},
	} {
		s, err := c.Submit(t.Context(), "misbehave", d.payload, d.options...)
		if err != nil {
			t.Fatal(err)
		}
		ended, err := client.Wait(t.Context(), c, s.ID)
		if err != nil || ended.State != d.end {
			t.Fatalf("%v ended as %+v, %v, want %s", d.payload, ended, err, d.end)
		}
		if d.end != task.Completed {
			ends[s.ID.String()] = d.end
		}
	}
	m.signal(syscall.SIGKILL)
	m.wait()
	deaths := task.KeysOf("misbehave").Deaths()
	if n := rdb.LLen(t.Context(), deaths).Val(); n != 3 {
		t.Fatalf("%d deaths wait to be told after a kill -9, want 3", n)
	}
	m.start()
	entry, err := task.EncodeEntry(task.Entry{Queue: "mails", Kind: "mail", RetentionSeconds: 3600})
	if err != nil {
		t.Fatal(err)
	}
	mails := task.KeysOf("mails")
	if err := rdb.Set(t.Context(), mails.Entry(), entry, 0).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all deaths are told", func() error {
		if waiting, left := rdb.LLen(t.Context(), mails.Pending()).Val(), rdb.LLen(t.Context(), deaths).Val(); waiting != 3 || left != 0 {
			return fmt.Errorf("%d are told and %d are left", waiting, left)
		}
		return nil
	})
	for _, key := range rdb.LRange(t.Context(), mails.Pending(), 0, -1).Val() {
		message, err := task.DecodeMessage([]byte(rdb.HGet(t.Context(), mails.Task(key), "msg").Val()))
		if err != nil {
			t.Fatal(err)
		}
		var told struct {
			Letter task.Task `json:"dead_letter"`
		}
		if err := json.Unmarshal(message.Payload, &told); err != nil {
			t.Fatal(err)
		}
		l := told.Letter
		if want := ends[l.ID.String()]; l.State != want || l.Fault == nil || len(l.Payload) == 0 || l.Ended.IsZero() {
			t.Errorf("a death is told as %s, want state %s, its fault and its payload", message.Payload, want)
		}
		delete(ends, l.ID.String())
	}
	if len(ends) > 0 {
		t.Errorf("nobody was told of %v", ends)
	}
	m.stop()
}
