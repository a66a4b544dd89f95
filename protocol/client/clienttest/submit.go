package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

func submitTests() map[string]func(*testing.T, Env) {
	return map[string]func(*testing.T, Env){
		"submit/the ID comes from the content":    contentIDs,
		"submit/the same work joins":              joins,
		"submit/Unique(false) joins nothing":      notUnique,
		"submit/ended work runs again":            again,
		"submit/a delay is never cut":             delayed,
		"submit/unknown queues are refused":       unknownQueues,
		"submit/wrong payloads are refused":       wrongPayloads,
		"submit/large payloads and results pass":  large,
		"submit/a context that is over is obeyed": submitOver,
	}
}

// The same content gives the same ID, however it is written; other content gives another.
func contentIDs(t *testing.T, env Env) {
	ctx, n := env.limit(t), nonce()
	first := env.submit(ctx, t, Payload{Do: "return", Value: n}, client.Delay(time.Hour))
	if first.Joined || first.ID.Queue != env.Queue || first.State != task.Waiting {
		t.Errorf("the first submit gave %+v, want a new waiting task in %s", first, env.Queue)
	}
	second, err := env.Client.Submit(ctx, env.Queue, json.RawMessage(` { "value" : "`+n+`", "do":"return" } `))
	if err != nil || second.ID != first.ID || !second.Joined {
		t.Errorf("the same content written otherwise gave %+v, %v; want %s, joined", second, err, first.ID)
	}
	third, err := env.Client.Submit(ctx, env.Queue, map[string]any{"do": "return", "value": n + "x"}, client.Delay(time.Hour))
	if err != nil || third.ID == first.ID || third.Joined {
		t.Errorf("other content gave %+v, %v; want another new task", third, err)
	}
	for _, id := range []task.ID{first.ID, third.ID} {
		if _, err := env.Client.Cancel(ctx, id); err != nil {
			t.Errorf("cancel %s: %v", id, err)
		}
	}
}

// A second submit of work that waits or runs joins it, says in which state it is, and gets its result.
func joins(t *testing.T, env Env) {
	ctx := env.limit(t)
	p := Payload{Do: "sleep", Value: nonce(), MS: 700}
	first := env.submit(ctx, t, p)
	env.until(ctx, t, first.ID, task.Running)
	second := env.submit(ctx, t, p)
	if !second.Joined || second.ID != first.ID || second.State.Ended() || second.State == task.Unknown {
		t.Errorf("the second submit gave %+v, want a joined task that has not ended", second)
	}
	a, b := env.wait(ctx, t, first.ID), env.wait(ctx, t, second.ID)
	if a.State != task.Completed || b.State != task.Completed || a.Attempts != 1 || b.Attempts != 1 {
		t.Errorf("they ended as %s after %d and %s after %d attempts, want completed after 1", a.State, a.Attempts, b.State, b.Attempts)
	}
}

// Unique(false) gives each submit of the same work a task of its own.
func notUnique(t *testing.T, env Env) {
	ctx := env.limit(t)
	p := Payload{Do: "return", Value: nonce()}
	seen := map[task.ID]bool{}
	for range 3 {
		s := env.submit(ctx, t, p, client.Unique(false))
		if s.Joined || seen[s.ID] {
			t.Errorf("submit gave %+v, want a task that joins nothing", s)
		}
		seen[s.ID] = true
	}
	for id := range seen {
		if got := env.wait(ctx, t, id); got.State != task.Completed {
			t.Errorf("%s ended as %s", id, got.State)
		}
	}
}

// Work that has ended, well or badly, is new when it is submitted again, and who waits then gets the new end.
func again(t *testing.T, env Env) {
	ctx := env.limit(t)
	for _, do := range []string{"return", "permanent"} {
		p := Payload{Do: do, Note: nonce()}
		var last time.Time
		for i := range 3 {
			s := env.submit(ctx, t, p)
			if s.Joined {
				t.Errorf("%s, submit %d joined a task that has ended: %+v", do, i, s)
			}
			got := env.wait(ctx, t, s.ID)
			if !got.Ended.After(last) {
				t.Errorf("%s, submit %d got the end of %s, which is not after %s", do, i, got.Ended, last)
			}
			last = got.Ended
		}
	}
}

// A delayed task waits, says until when, and begins no earlier than asked.
func delayed(t *testing.T, env Env) {
	ctx, delay := env.limit(t), 1200*time.Millisecond
	begun := time.Now()
	s := env.submit(ctx, t, Payload{Do: "return", Value: nonce()}, client.Delay(delay))
	got, err := env.Client.Get(ctx, s.ID)
	if err != nil || got.State != task.Waiting || got.RunAt.Before(begun.Add(delay).Truncate(time.Millisecond)) {
		t.Errorf("get gave %+v, %v; want a waiting task that runs no earlier than %s", got, err, begun.Add(delay))
	}
	if ended := env.wait(ctx, t, s.ID); ended.State != task.Completed || time.Since(begun) < delay {
		t.Errorf("it ended as %s after %s, want completed after %s at the earliest", ended.State, time.Since(begun), delay)
	}
}

// A queue that nobody has ever served is an error that names it.
func unknownQueues(t *testing.T, env Env) {
	ctx := env.limit(t)
	for _, queue := range []string{"no-such-queue", "", "{braces}", "Upper Case"} {
		_, err := env.Client.Submit(ctx, queue, Payload{Do: "return"})
		if !errors.Is(err, client.ErrUnknownQueue) || !strings.Contains(err.Error(), queue) {
			t.Errorf("submit to %q gave %v; want ErrUnknownQueue that names it", queue, err)
		}
	}
}

// A payload that is no object or breaks the schema is refused, with the field named.
func wrongPayloads(t *testing.T, env Env) {
	ctx := env.limit(t)
	tests := []struct {
		payload any
		names   string
	}{
		{nil, ""},
		{"text", ""},
		{[]int{1}, ""},
		{json.RawMessage(`{"do":`), ""},
		{json.RawMessage(`{"do":"return"} {}`), ""},
		{make(chan int), ""},
		{map[string]any{"value": 1}, "do"},
		{map[string]any{"do": 1}, "do"},
		{map[string]any{"do": "return", "ms": "soon"}, "ms"},
		{map[string]any{"do": "return", "value": strings.Repeat("x", task.MaxPayload)}, ""},
	}
	for _, test := range tests {
		s, err := env.Client.Submit(ctx, env.Queue, test.payload)
		if !errors.Is(err, client.ErrInvalidPayload) || !strings.Contains(err.Error(), test.names) {
			t.Errorf("submit %.60s gave %+v, %.500v; want ErrInvalidPayload that names %q", fmt.Sprint(test.payload), s, err, test.names)
		}
	}
}

// A payload of megabytes arrives, and a result of the same size comes back.
func large(t *testing.T, env Env) {
	ctx := env.limit(t)
	value := nonce() + strings.Repeat("ß<", 700<<10)
	s := env.submit(ctx, t, Payload{Do: "return", Value: value})
	ended := env.wait(ctx, t, s.ID)
	var got string
	if err := json.Unmarshal(ended.Result, &got); err != nil || got != value {
		t.Errorf("a value of %d bytes came back as %d bytes (%v), state %s", len(value), len(got), err, ended.State)
	}
}

// A context that has ended is an error at once, and the error says so.
func submitOver(t *testing.T, env Env) {
	ctx, cancel := context.WithCancel(env.limit(t))
	cancel()
	if _, err := env.Client.Submit(ctx, env.Queue, Payload{Do: "return", Value: nonce()}); !errors.Is(err, context.Canceled) {
		t.Errorf("submit gave %v, want context.Canceled", err)
	}
	id := task.RandomID(env.Queue)
	if _, err := env.Client.Get(ctx, id); !errors.Is(err, context.Canceled) {
		t.Errorf("get gave %v, want context.Canceled", err)
	}
	if _, err := env.Client.Cancel(ctx, id); !errors.Is(err, context.Canceled) {
		t.Errorf("cancel gave %v, want context.Canceled", err)
	}
	if _, err := client.Wait(ctx, env.Client, id); !errors.Is(err, context.Canceled) {
		t.Errorf("wait gave %v, want context.Canceled", err)
	}
}
