package clienttest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

func batchTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"batch/many tasks are submitted and end":       manyAtOnce,
		"batch/what is wrong keeps nothing else out":   mixedBatch,
		"batch/a context that is over is obeyed":       batchOver,
		"submit/a deadline expires what did not begin": deadlineExpires,
		"submit/a retention of its own":                ownRetention,
		"call/a result has its type":                   typedResult,
	}
}

// A batch that takes several calls is submitted whole, in order and each task once; the same again joins or runs anew.
func manyAtOnce(t *suite) {
	ctx, n := t.limit(), nonce()
	const many = 1500
	work := make([]client.Work, many)
	for i := range work {
		work[i] = client.Work{Queue: t.Queue, Payload: Payload{Do: "return", Value: fmt.Sprint(n, i)}}
	}
	batch, err := t.Client.SubmitBatch(ctx, work)
	if err != nil || len(batch) != many {
		t.Fatalf("%d answers, %v", len(batch), err)
	}
	ids := client.IDs(batch)
	if len(ids) != many {
		t.Fatalf("%d tasks were submitted, want %d", len(ids), many)
	}
	ended, err := client.WaitAll(ctx, t.Client, ids...)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range ended {
		if got, err := client.Result[string](e); err != nil || got != fmt.Sprint(n, i) {
			t.Fatalf("task %d: %q, %v", i, got, err)
		}
	}
}

// What is wrong with a task is told at its place, with the errors of a single submit, and the others are submitted; the same work
// twice in a batch is one task.
func mixedBatch(t *suite) {
	ctx, n := t.limit(), nonce()
	good := Payload{Do: "return", Value: n}
	work := []client.Work{
		{Queue: t.Queue, Payload: good, Options: []client.Option{client.Delay(time.Hour)}},
		{Queue: "no-such-queue", Payload: good},
		{Queue: t.Queue, Payload: map[string]any{"do": 7}},
		{Queue: t.Queue, Payload: math.Inf(1)},
		{Queue: t.Queue, Payload: good},
		{Queue: t.Queue, Payload: good, Options: []client.Option{client.Unique(false), client.Delay(time.Hour)}},
	}
	batch, err := t.Client.SubmitBatch(ctx, work)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, client.ErrUnknownQueue, client.ErrInvalidPayload, client.ErrInvalidPayload, nil, nil} {
		if !errors.Is(batch[i].Err, want) {
			t.Errorf("task %d: %v, want %v", i, batch[i].Err, want)
		}
	}
	if batch[0].Joined || !batch[4].Joined || batch[4].ID != batch[0].ID || batch[5].Joined || batch[5].ID == batch[0].ID {
		t.Errorf("the same work is %+v, %+v and %+v", batch[0], batch[4], batch[5])
	}
	if ids := client.IDs(batch); len(ids) != 2 {
		t.Errorf("the IDs are %v, want two", ids)
	}
	for _, id := range client.IDs(batch) {
		if _, err := t.Client.Cancel(ctx, id); err != nil {
			t.Error(err)
		}
	}
	if empty, err := t.Client.SubmitBatch(ctx, nil); err != nil || len(empty) != 0 {
		t.Errorf("a batch of nothing gives %v, %v", empty, err)
	}
}

// A context that is over submits nothing, and every task says so.
func batchOver(t *suite) {
	over, cancel := context.WithCancel(t.limit())
	cancel()
	batch, err := t.Client.SubmitBatch(over, []client.Work{{Queue: t.Queue, Payload: Payload{Do: "return", Value: nonce()}}})
	if !errors.Is(err, context.Canceled) || len(batch) != 1 || !errors.Is(batch[0].Err, context.Canceled) {
		t.Errorf("got %+v, %v", batch, err)
	}
}

// A task whose deadline passes before it begins ends as expired, and says so; one that makes it is as any other.
func deadlineExpires(t *suite) {
	ctx := t.limit()
	late := t.submit(ctx, Payload{Do: "return", Value: nonce()}, client.Delay(2*time.Second), client.Deadline(time.Now().Add(500*time.Millisecond)))
	early := t.submit(ctx, Payload{Do: "return", Value: nonce()}, client.Deadline(time.Now().Add(time.Hour)))
	if got := t.wait(ctx, late.ID); got.State != task.Expired || got.Attempts != 0 || got.Fault == nil || got.Fault.Kind != fault.Timeout || !strings.Contains(got.Fault.Message, "deadline") {
		t.Errorf("the late one is %s after %d attempts: %v", got.State, got.Attempts, got.Fault)
	}
	if got := t.wait(ctx, early.ID); got.State != task.Completed {
		t.Errorf("the early one is %s: %v", got.State, got.Fault)
	}
}

// The record of a task is kept for as long as its client said, whatever the queue says; without one a waiting client still gets
// the end.
func ownRetention(t *suite) {
	ctx := t.limit()
	none := t.submit(ctx, Payload{Do: "sleep", Value: nonce(), MS: 1000}, client.Retention(0))
	kept := t.submit(ctx, Payload{Do: "return", Value: nonce()}, client.Retention(time.Hour))
	if got := t.wait(ctx, none.ID); got.State != task.Completed {
		t.Errorf("the one without a record is %s", got.State)
	}
	if got, err := t.Client.Get(ctx, none.ID); !errors.Is(err, client.ErrUnknownTask) {
		t.Errorf("there is a record: %+v, %v", got, err)
	}
	t.wait(ctx, kept.ID)
	if got, err := t.Client.Get(ctx, kept.ID); err != nil || got.State != task.Completed {
		t.Errorf("the record that was to be kept: %v, %v", got, err)
	}
}

// Call returns what the worker did, as the type that the caller wants, or how the task ended.
func typedResult(t *suite) {
	ctx, n := t.limit(), nonce()
	type answer struct{ Name string }
	got, err := client.Call[answer](ctx, t.Client, t.Queue, Payload{Do: "return", Value: answer{Name: n}})
	if err != nil || got.Name != n {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := client.Call[int](ctx, t.Client, t.Queue, Payload{Do: "return", Value: n}); err == nil || !strings.Contains(err.Error(), "as int") {
		t.Errorf("a text read as a number gives %v", err)
	}
	if _, err := client.Call[string](ctx, t.Client, t.Queue, Payload{Do: "sleep", Value: nonce(), MS: 1000}, client.Retention(0)); !errors.Is(err, client.ErrNoRecord) {
		t.Errorf("a result that is not kept gives %v", err)
	}
	_, err = client.Call[int](ctx, t.Client, t.Queue, Payload{Do: "permanent", Note: "no " + n})
	var ended *client.TaskError
	var why *fault.Fault
	if !errors.As(err, &ended) || ended.Task.State != task.Dead || !errors.As(err, &why) || !strings.Contains(err.Error(), "no "+n) {
		t.Errorf("a task that failed gives %v", err)
	}
}
