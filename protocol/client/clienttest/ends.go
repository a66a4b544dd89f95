package clienttest

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

func endTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"end/a result comes back as it was":        results,
		"end/a permanent fault is told":            permanent,
		"end/a failure is retried, then dead":      failures,
		"end/a task that kills its worker is told": killers,
		"get/a waiting task shows its payload":     getWaiting,
		"get/what is not there is unknown":         getUnknown,
	}
}

// Every kind of JSON value comes back as the worker returned it, with its times and its attempt.
func results(t *suite) {
	ctx := t.limit()
	values := []any{nonce(), map[string]any{"n": nonce(), "deep": []any{1.5, nil, true}}, []any{nonce(), "ü\u2028<&>"}}
	for _, value := range values {
		s := t.submit(ctx, Payload{Do: "return", Value: value})
		ended := t.wait(ctx, s.ID)
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatalf("write %v: %v", value, err)
		}
		if ended.State != task.Completed || !t.sameJSON(ended.Result, want) || ended.Fault != nil {
			t.Errorf("it ended as %s with %s and %v, want completed with %s", ended.State, ended.Result, ended.Fault, want)
		}
		if ended.Attempts != 1 || ended.Kind == "" || ended.Submitted.IsZero() || ended.Ended.Before(ended.Started) || len(ended.Payload) != 0 {
			t.Errorf("the record is %+v; want 1 attempt, a kind, its times in order and no payload", ended)
		}
		stored, err := t.Client.Get(ctx, s.ID)
		if err != nil || stored.State != task.Completed || !t.sameJSON(stored.Result, want) {
			t.Errorf("get gave %+v, %v; want the same record", stored, err)
		}
	}
}

func (t *suite) sameJSON(a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Errorf("%.80q is not JSON: %v", a, err)
		return false
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Errorf("%.80q is not JSON: %v", b, err)
		return false
	}
	again, errX := json.Marshal(x)
	other, errY := json.Marshal(y)
	return errX == nil && errY == nil && string(again) == string(other)
}

// A permanent fault ends the task at once, and its kind and words reach who waits.
func permanent(t *suite) {
	ctx, words := t.limit(), "no use: "+nonce()
	s := t.submit(ctx, Payload{Do: "permanent", Note: words})
	ended := t.wait(ctx, s.ID)
	if ended.State != task.Dead || ended.Attempts != 1 || ended.Fault == nil || !ended.Fault.Permanent || !strings.Contains(ended.Fault.Message, words) {
		t.Errorf("it ended as %s after %d attempts with %+v, want dead after 1 with a permanent fault that says %q", ended.State, ended.Attempts, ended.Fault, words)
	}
	if len(ended.Result) != 0 {
		t.Errorf("a dead task has the result %s", ended.Result)
	}
}

// A task that fails is tried again and is dead in the end; each failure is an event, and the end counts them.
func failures(t *suite) {
	ctx, words := t.limit(), "not today: "+nonce()
	// The delay lets the subscription stand before the first failure.
	s := t.submit(ctx, Payload{Do: "fail", Note: words}, client.Delay(1))
	ends, events, err := collect(ctx, t.Client, []task.ID{s.ID}, client.WithEvents())
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	ended := ends[s.ID].Ended
	if ended == nil || ended.State != task.Dead || ended.Counters.Failures < 1 || ended.Fault == nil || !strings.Contains(ended.Fault.Message, words) {
		t.Fatalf("it ended as %+v, want dead with its failures counted and a fault that says %q", ended, words)
	}
	failed := 0
	for _, e := range events {
		if e.State == task.Failed && e.ID == s.ID {
			failed++
		}
	}
	if ended.Attempts > 1 && failed == 0 {
		t.Errorf("of %d attempts no failure was told", ended.Attempts)
	}
}

// A task that kills its process is not lost: it ends, badly, and the kills are counted.
func killers(t *suite) {
	ctx := t.limit()
	for _, do := range []string{"exit", "panic"} {
		s := t.submit(ctx, Payload{Do: do, Note: nonce()})
		ended := t.wait(ctx, s.ID)
		bad := ended.State == task.Quarantined || ended.State == task.Dead
		if !bad || ended.Fault == nil || ended.Counters.Kills+ended.Counters.Failures < 1 {
			t.Errorf("%s ended as %s with %+v and %+v, want quarantined or dead, with a fault, counted", do, ended.State, ended.Fault, ended.Counters)
		}
	}
}

// A task that waits shows its payload and when it was submitted.
func getWaiting(t *suite) {
	ctx, n := t.limit(), nonce()
	s := t.submit(ctx, Payload{Do: "return", Value: n}, client.Delay(1e12))
	got, err := t.Client.Get(ctx, s.ID)
	if err != nil || got.ID != s.ID || got.State != task.Waiting || got.Attempts != 0 || got.Submitted.IsZero() || got.Kind == "" || got.RunAt.IsZero() {
		t.Errorf("get gave %+v, %v; want a waiting task with its kind and its times", got, err)
	}
	if err == nil && !t.sameJSON(got.Payload, []byte(`{"do":"return","value":"`+n+`"}`)) {
		t.Errorf("its payload is %s", got.Payload)
	}
	if _, err := t.Client.Cancel(ctx, s.ID); err != nil {
		t.Errorf("cancel: %v", err)
	}
}

// A task that was never submitted, or cannot be, is unknown.
func getUnknown(t *suite) {
	ctx := t.limit()
	for _, id := range []task.ID{task.RandomID(t.Queue), task.RandomID("no-such-queue"), {}, {Queue: "{x}", Key: "y z"}} {
		if got, err := t.Client.Get(ctx, id); !errors.Is(err, client.ErrUnknownTask) {
			t.Errorf("get %q gave %+v, %v; want ErrUnknownTask", id, got, err)
		}
		if state, err := t.Client.Cancel(ctx, id); !errors.Is(err, client.ErrUnknownTask) {
			t.Errorf("cancel %q gave %s, %v; want ErrUnknownTask", id, state, err)
		}
		if got, err := client.Wait(ctx, t.Client, id); !errors.Is(err, client.ErrUnknownTask) {
			t.Errorf("wait for %q gave %+v, %v; want ErrUnknownTask", id, got, err)
		}
	}
}
