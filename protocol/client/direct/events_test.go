package direct_test

import (
	"context"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/clienttest/standin"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// The first wait of a client, for a task that ended long ago, is answered at once and not by a later look.
func TestFirstWait(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	standin.Start(t, connect(t, server.URL()), "q", standin.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	first := open(t, server.URL())
	s, err := first.Submit(ctx, "q", map[string]any{"do": "return"})
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	if _, err := client.Wait(ctx, first, s.ID); err != nil {
		t.Fatalf("wait: %v", err)
	}
	for _, c := range []*direct.Client{open(t, server.URL()), first} {
		begun := time.Now()
		if _, err := client.Wait(ctx, c, s.ID); err != nil || time.Since(begun) > 4*time.Second {
			t.Errorf("the wait took %s: %v", time.Since(begun), err)
		}
	}
}

// A queue that keeps no records tells each end from its event alone.
func TestNoRecords(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	standin.Start(t, connect(t, server.URL()), "q", standin.Options{NoRecords: true})
	c := open(t, server.URL())
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for i := range 20 {
		s, err := c.Submit(ctx, "q", map[string]any{"do": "sleep", "ms": 20, "value": i})
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		ended, err := client.Wait(ctx, c, s.ID)
		if err != nil || ended.ID != s.ID || ended.State != task.Completed || ended.Attempts != 1 || ended.Ended.IsZero() {
			t.Errorf("wait gave %+v, %v; want what the event says", ended, err)
		}
	}
}

// The end of an earlier life of a task, told late, is not taken for that of the present one.
func TestStaleEnd(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := connect(t, server.URL())
	s := standin.Start(t, rdb, "q", standin.Options{Idle: true})
	c := open(t, server.URL())
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	submitted, err := c.Submit(ctx, "q", map[string]any{"do": "return"})
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	if message, err := s.Take(ctx); err != nil || message == nil {
		t.Fatalf("take gave %v, %v", message, err)
	}
	stale, err := task.EncodeEvents(&task.Event{ID: submitted.ID, State: task.Dead, At: time.Now()})
	if err != nil {
		t.Fatalf("write an event: %v", err)
	}
	ended := make(chan *task.Task, 1)
	go func() {
		got, err := client.Wait(ctx, c, submitted.ID)
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		ended <- got
	}()
	channel := task.KeysOf("q").EventsChannel()
	for range 20 {
		eventually(t, "somebody listens", func() bool { return rdb.Publish(ctx, channel, stale).Val() == 1 })
	}
	end := &task.Task{ID: submitted.ID, State: task.Completed, Result: []byte("1"), Attempts: 1}
	if err := s.End(ctx, end); err != nil {
		t.Fatalf("end: %v", err)
	}
	if got := <-ended; got == nil || got.State != task.Completed || string(got.Result) != "1" {
		t.Errorf("wait gave %+v, want the present end", got)
	}
}

// An event that is lost without any trace is made up for in the end by looking again.
func TestLostEvent(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	rdb := connect(t, server.URL())
	s := standin.Start(t, rdb, "q", standin.Options{Idle: true})
	c := open(t, server.URL())
	ctx, cancel := context.WithTimeout(t.Context(), 2*within)
	defer cancel()
	submitted, err := c.Submit(ctx, "q", map[string]any{"do": "return"})
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	if _, err := s.Take(ctx); err != nil {
		t.Fatalf("take: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := client.Wait(ctx, c, submitted.ID)
		ended <- err
	}()
	channel := task.KeysOf("q").EventsChannel()
	eventually(t, "somebody listens", func() bool { return rdb.Publish(ctx, channel, "noise").Val() == 1 })
	record, err := task.EncodeRecord(&task.Task{ID: submitted.ID, State: task.Completed})
	if err != nil {
		t.Fatalf("write a record: %v", err)
	}
	if err := rdb.Set(ctx, task.KeysOf("q").Record(submitted.ID.Key), record, time.Hour).Err(); err != nil {
		t.Fatalf("set: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("wait: %v", err)
	}
}
