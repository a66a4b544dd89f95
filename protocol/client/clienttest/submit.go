package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

func submitTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"submit/the ID comes from the content":    contentIDs,
		"submit/the same work joins":              joins,
		"submit/Unique(false) joins nothing":      notUnique,
		"submit/ended work runs again":            again,
		"submit/a delay is never cut":             delayed,
		"submit/unknown queues are refused":       unknownQueues,
		"submit/wrong payloads are refused":       wrongPayloads,
		"submit/large payloads and results pass":  large,
		"submit/a context that is over is obeyed": submitOver,
		"submit/many at once do not mix":          manyCallers,
	}
}

// The same content gives the same ID, however it is written; other content gives another.
func contentIDs(t *suite) {
	ctx, n := t.limit(), nonce()
	first := t.submit(ctx, Payload{Do: "return", Value: n}, client.Delay(time.Hour))
	if first.Joined || first.ID.Queue != t.Queue || first.State != task.Waiting {
		t.Errorf("the first submit gave %+v, want a new waiting task in %s", first, t.Queue)
	}
	second, err := t.Client.Submit(ctx, t.Queue, json.RawMessage(` { "value" : "`+n+`", "do":"return" } `))
	if err != nil || second.ID != first.ID || !second.Joined {
		t.Errorf("the same content written otherwise gave %+v, %v; want %s, joined", second, err, first.ID)
	}
	third, err := t.Client.Submit(ctx, t.Queue, map[string]any{"do": "return", "value": n + "x"}, client.Delay(time.Hour))
	if err != nil || third.ID == first.ID || third.Joined {
		t.Errorf("other content gave %+v, %v; want another new task", third, err)
	}
	for _, id := range []task.ID{first.ID, third.ID} {
		if _, err := t.Client.Cancel(ctx, id); err != nil {
			t.Errorf("cancel %s: %v", id, err)
		}
	}
}

// A second submit of work that waits or runs joins it, says in which state it is, and gets its result.
func joins(t *suite) {
	ctx := t.limit()
	p := Payload{Do: "sleep", Value: nonce(), MS: 1500}
	first := t.submit(ctx, p)
	t.until(ctx, first.ID, task.Running)
	second := t.submit(ctx, p)
	if !second.Joined || second.ID != first.ID || second.State.Ended() || second.State == task.Unknown {
		t.Errorf("the second submit gave %+v, want a joined task that has not ended", second)
	}
	a, b := t.wait(ctx, first.ID), t.wait(ctx, second.ID)
	if a.State != task.Completed || b.State != task.Completed || a.Attempts != 1 || b.Attempts != 1 {
		t.Errorf("they ended as %s after %d and %s after %d attempts, want completed after 1", a.State, a.Attempts, b.State, b.Attempts)
	}
}

// Unique(false) gives each submit of the same work a task of its own.
func notUnique(t *suite) {
	ctx := t.limit()
	p := Payload{Do: "return", Value: nonce()}
	seen := map[task.ID]bool{}
	for range 3 {
		s := t.submit(ctx, p, client.Unique(false))
		if s.Joined || seen[s.ID] {
			t.Errorf("submit gave %+v, want a task that joins nothing", s)
		}
		seen[s.ID] = true
	}
	for id := range seen {
		if got := t.wait(ctx, id); got.State != task.Completed {
			t.Errorf("%s ended as %s", id, got.State)
		}
	}
}

// Work that has ended, well or badly, is new when it is submitted again, and who waits then gets the new end.
func again(t *suite) {
	ctx := t.limit()
	for _, do := range []string{"return", "permanent"} {
		p := Payload{Do: do, Note: nonce()}
		var last time.Time
		for i := range 3 {
			s := t.submit(ctx, p)
			if s.Joined {
				t.Errorf("%s, submit %d joined a task that has ended: %+v", do, i, s)
			}
			got := t.wait(ctx, s.ID)
			if !got.Ended.After(last) {
				t.Errorf("%s, submit %d got the end of %s, which is not after %s", do, i, got.Ended, last)
			}
			last = got.Ended
		}
	}
}

// A delayed task waits, says until when, and begins no earlier than asked.
func delayed(t *suite) {
	ctx, delay := t.limit(), 1200*time.Millisecond
	begun := time.Now()
	s := t.submit(ctx, Payload{Do: "return", Value: nonce()}, client.Delay(delay))
	got, err := t.Client.Get(ctx, s.ID)
	if err != nil || got.State != task.Waiting || got.RunAt.Before(begun.Add(delay).Truncate(time.Millisecond)) {
		t.Errorf("get gave %+v, %v; want a waiting task that runs no earlier than %s", got, err, begun.Add(delay))
	}
	if ended := t.wait(ctx, s.ID); ended.State != task.Completed || time.Since(begun) < delay {
		t.Errorf("it ended as %s after %s, want completed after %s at the earliest", ended.State, time.Since(begun), delay)
	}
}

// A queue that nobody has ever served is an error that names it.
func unknownQueues(t *suite) {
	ctx := t.limit()
	for _, queue := range []string{"no-such-queue", "", "{braces}", "Upper Case"} {
		_, err := t.Client.Submit(ctx, queue, Payload{Do: "return"})
		if !errors.Is(err, client.ErrUnknownQueue) || !strings.Contains(err.Error(), queue) {
			t.Errorf("submit to %q gave %v; want ErrUnknownQueue that names it", queue, err)
		}
	}
}

// A payload that is no object or breaks the schema is refused, with the field named.
func wrongPayloads(t *suite) {
	ctx := t.limit()
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
		s, err := t.Client.Submit(ctx, t.Queue, test.payload)
		if !errors.Is(err, client.ErrInvalidPayload) || !strings.Contains(err.Error(), test.names) {
			t.Errorf("submit %.60s gave %+v, %.500v; want ErrInvalidPayload that names %q", fmt.Sprint(test.payload), s, err, test.names)
		}
	}
}

// A payload of megabytes arrives, and a result of the same size comes back.
func large(t *suite) {
	ctx := t.limit()
	value := nonce() + strings.Repeat("ß<", 700<<10)
	s := t.submit(ctx, Payload{Do: "return", Value: value})
	ended := t.wait(ctx, s.ID)
	var got string
	if err := json.Unmarshal(ended.Result, &got); err != nil || got != value {
		t.Errorf("a value of %d bytes came back as %d bytes (%v), state %s", len(value), len(got), err, ended.State)
	}
}

// A context that has ended is an error at once, and the error says so.
func submitOver(t *suite) {
	ctx, cancel := context.WithCancel(t.limit())
	cancel()
	if _, err := t.Client.Submit(ctx, t.Queue, Payload{Do: "return", Value: nonce()}); !errors.Is(err, context.Canceled) {
		t.Errorf("submit gave %v, want context.Canceled", err)
	}
	id := task.RandomID(t.Queue)
	if _, err := t.Client.Get(ctx, id); !errors.Is(err, context.Canceled) {
		t.Errorf("get gave %v, want context.Canceled", err)
	}
	if _, err := t.Client.Cancel(ctx, id); !errors.Is(err, context.Canceled) {
		t.Errorf("cancel gave %v, want context.Canceled", err)
	}
	if _, err := client.Wait(ctx, t.Client, id); !errors.Is(err, context.Canceled) {
		t.Errorf("wait gave %v, want context.Canceled", err)
	}
}

// Who submits while others do, good and bad, gets the answer to its own task.
func manyCallers(t *suite) {
	ctx, n := t.limit(), nonce()
	var submitting sync.WaitGroup
	for caller := range 64 {
		submitting.Go(func() {
			switch caller % 8 {
			case 0:
				if got, err := t.Client.Submit(ctx, "no-such-queue", Payload{Do: "return", Value: n}); !errors.Is(err, client.ErrUnknownQueue) {
					t.Errorf("a wrong queue gave %+v, %v", got, err)
				}
			case 1, 2:
				if got, err := t.Client.Submit(ctx, t.Queue, map[string]any{"do": caller}); !errors.Is(err, client.ErrInvalidPayload) || !strings.Contains(err.Error(), "do") {
					t.Errorf("a wrong payload gave %+v, %v", got, err)
				}
			default:
				want := fmt.Sprint(n, caller)
				if got, err := client.Call[string](ctx, t.Client, t.Queue, Payload{Do: "return", Value: want}); err != nil || got != want {
					t.Errorf("the call of %q gave %q, %v", want, got, err)
				}
			}
		})
	}
	submitting.Wait()
}
