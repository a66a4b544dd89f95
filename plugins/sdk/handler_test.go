package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// input is the payload of the tests' workers.
type input struct {
	Name string `json:"name,omitempty"`
	N    int    `json:"n,omitempty"`
}

func program[Out any](handle func(context.Context, input) (Out, error)) *sdk.Program {
	return sdk.New(sdk.Worker{Name: "t", Version: "1", Slots: 4}, handle)
}

// asFault returns the fault of a run that must have failed.
func asFault(t *testing.T, err error) *fault.Fault {
	t.Helper()
	var f *fault.Fault
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault", err)
	}
	return f
}

// What a handler returns reaches the manager as it is meant: the result as JSON, an error as a fault with its wishes.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	zero, minute := time.Duration(0), time.Minute
	cause := errors.New("broken")
	for _, c := range []struct {
		name   string
		out    any
		err    error
		result string
		want   fault.Fault
	}{
		{name: "string", out: "<a>&", result: `"<a>&"`},
		{name: "nil", result: `null`},
		{name: "raw", out: json.RawMessage(`{"a": [1]}`), result: `{"a":[1]}`},
		{name: "struct", out: struct{}{}, result: `{}`},
		{name: "error", err: cause, want: fault.Fault{Kind: fault.Failed, Message: "broken"}},
		{name: "permanent", err: sdk.Permanent(cause), want: fault.Fault{Kind: fault.Failed, Message: "broken", Permanent: true}},
		{name: "retry at once", err: sdk.RetryAfter(0, cause), want: fault.Fault{Kind: fault.Failed, Message: "broken", RetryAfter: &zero}},
		{
			name: "wrapped", err: fmt.Errorf("fetch: %w", sdk.RetryAfter(time.Minute, fmt.Errorf("ask: %w", fault.New(fault.Unreachable, "no answer")))),
			want: fault.Fault{Kind: fault.Unreachable, Message: "fetch: ask: unreachable: no answer", RetryAfter: &minute},
		},
		{
			name: "both wishes", err: sdk.Permanent(sdk.RetryAfter(time.Minute, cause)),
			want: fault.Fault{Kind: fault.Failed, Message: "broken", Permanent: true, RetryAfter: &minute},
		},
		{name: "fault", err: fault.New(fault.HTTPStatus, "404").AsPermanent(), want: fault.Fault{Kind: fault.HTTPStatus, Message: "404", Permanent: true}},
		{name: "nil fault", err: (*fault.Fault)(nil), want: fault.Fault{Kind: fault.Failed, Message: "failed without saying why"}},
		{name: "not UTF-8", err: errors.New("a\xffb"), want: fault.Fault{Kind: fault.Failed, Message: "a\uFFFDb"}},
		{name: "not JSON", out: math.NaN(), want: fault.Fault{Kind: fault.Failed, Permanent: true, Message: "write the result as JSON: json: unsupported value: NaN"}},
		{name: "cancelled inside", err: context.Canceled, want: fault.Fault{Kind: fault.Failed, Message: "context canceled"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			worker := sdktest.Start(t, program(func(context.Context, input) (any, error) { return c.out, c.err }))
			result, err := worker.Run(t.Context(), `{"name":"x"}`)
			if c.result != "" {
				if err != nil || string(result) != c.result {
					t.Errorf("got %s, %v; want %s", result, err, c.result)
				}
				return
			}
			f := asFault(t, err)
			if f.Kind != c.want.Kind || f.Message != c.want.Message || f.Permanent != c.want.Permanent {
				t.Errorf("got %+v, want %+v", f, c.want)
			}
			if (f.RetryAfter == nil) != (c.want.RetryAfter == nil) || f.RetryAfter != nil && *f.RetryAfter != *c.want.RetryAfter {
				t.Errorf("got RetryAfter %v, want %v", f.RetryAfter, c.want.RetryAfter)
			}
		})
	}
}

// Permanent and RetryAfter keep the chain of an error, and make no error of none.
func TestErrorsKeepTheirChain(t *testing.T) {
	t.Parallel()
	cause := errors.New("broken")
	if err := sdk.Permanent(sdk.RetryAfter(time.Second, cause)); !errors.Is(err, cause) || err.Error() != "broken" {
		t.Errorf("got %v", err)
	}
	if sdk.Permanent(nil) != nil || sdk.RetryAfter(time.Second, nil) != nil {
		t.Error("an error was made of none")
	}
}

// A payload that does not fit is a permanent fault that names the field, and the handler is not called.
func TestInvalidPayload(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, program(func(context.Context, input) (string, error) { panic("called") }))
	for payload, want := range map[string]string{
		``: "not a JSON object", `[]`: "not a JSON object", `null`: "not a JSON object", `{"name":`: "unexpected end",
		`{"name":1}`: `payload field "name": want string, got number`, `{"n":"x"}`: `payload field "n": want int, got string`, `{} {}`: "after top-level value",
	} {
		f := asFault(t, second(worker.Run(t.Context(), payload, sdktest.Unchecked())))
		if f.Kind != fault.InvalidPayload || !f.Permanent || !strings.Contains(f.Message, want) {
			t.Errorf("%s: got %v (permanent: %v), want %q", payload, f, f.Permanent, want)
		}
	}
	f := asFault(t, second(worker.Run(t.Context(), `{}`, sdktest.Kind("other"))))
	if f.Kind != fault.UnknownKind || !f.Permanent {
		t.Errorf("another kind of task: got %v", f)
	}
}

func second[T any](_ T, err error) error { return err }

// A result over the limit is a fault of its own, and one just at the limit arrives.
func TestResultLimit(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, program(func(_ context.Context, in input) (string, error) { return strings.Repeat("x", in.N), nil }))
	result, err := worker.Run(t.Context(), input{N: task.MaxResult - 2})
	if err != nil || len(result) != task.MaxResult {
		t.Errorf("got %d bytes, %v", len(result), err)
	}
	f := asFault(t, second(worker.Run(t.Context(), input{N: task.MaxResult - 1})))
	if f.Kind != fault.TooLarge || !f.Permanent {
		t.Errorf("got %v", f)
	}
}

// The end of a run reaches the handler through its context with the reason as its cause, and the outcome says the same.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		cause  error
		kind   fault.Kind
	}{
		{"timeout", sdk.ErrTimeout, fault.Timeout},
		{"cancelled", sdk.ErrCancelled, fault.Cancelled},
		{"stop", sdk.ErrStopped, fault.Interrupted},
		{"a reason of the future", sdk.ErrStopped, fault.Interrupted},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			causes := make(chan error, 1)
			worker := sdktest.Start(t, program(func(ctx context.Context, _ input) (string, error) {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return "", fmt.Errorf("wait: %w", ctx.Err())
			}))
			run := worker.Begin(`{}`)
			<-run.Begun()
			run.Cancel(c.reason)
			f := asFault(t, second(run.Wait()))
			if f.Kind != c.kind {
				t.Errorf("got %v, want kind %v", f, c.kind)
			}
			if cause := <-causes; !errors.Is(cause, c.cause) {
				t.Errorf("got cause %v, want %v", cause, c.cause)
			}
			run.Cancel(c.reason) // one that is late is ignored
		})
	}
}

// A handler that finishes in spite of a cancel keeps its result, and one that knows better keeps its permanent fault.
func TestCancelledButSure(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, program(func(ctx context.Context, in input) (string, error) {
		<-ctx.Done()
		if in.Name == "done" {
			return "done", nil
		}
		return "", sdk.Permanent(errors.New("no such feed"))
	}))
	finished, refused := worker.Begin(`{"name":"done"}`), worker.Begin(`{"name":"no"}`)
	finished.Cancel("cancelled")
	refused.Cancel("timeout")
	if result, err := finished.Wait(); err != nil || string(result) != `"done"` {
		t.Errorf("got %s, %v", result, err)
	}
	if f := asFault(t, second(refused.Wait())); f.Kind != fault.Failed || !f.Permanent {
		t.Errorf("got %v", f)
	}
}

// The deadline of a run is the deadline of its context, and passing it is a timeout.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker := sdktest.Start(t, program(func(ctx context.Context, _ input) (string, error) {
			at, ok := ctx.Deadline()
			if info := sdk.Info(ctx); !ok || !at.Equal(info.Deadline) || time.Until(at) != time.Minute {
				return "", fmt.Errorf("deadline %v, %v, info %v", at, ok, info)
			}
			<-ctx.Done()
			return "", context.Cause(ctx)
		}))
		f := asFault(t, second(worker.Run(t.Context(), `{}`, sdktest.Deadline(time.Now().Add(time.Minute)))))
		if f.Kind != fault.Timeout || f.Message != sdk.ErrTimeout.Error() {
			t.Errorf("got %v", f)
		}
	})
}

// Info tells a handler what it is running.
func TestInfo(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, program(func(ctx context.Context, _ input) (sdk.Task, error) { return sdk.Info(ctx), nil }), sdktest.Queue("slow"))
	id := task.ID{Queue: "slow", Key: "abc"}
	result, err := worker.Run(t.Context(), `{}`, sdktest.ID(id), sdktest.Attempt(3))
	var info sdk.Task
	if err := errors.Join(err, json.Unmarshal(result, &info)); err != nil {
		t.Fatal(err)
	}
	if want := (sdk.Task{ID: id, Queue: "slow", Attempt: 3}); info != want {
		t.Errorf("got %+v, want %+v", info, want)
	}
	if got := sdk.Info(t.Context()); got != (sdk.Task{}) {
		t.Errorf("outside of a handler: %+v", got)
	}
}

// The texts of faults are bounded and stay readable.
func TestLongErrors(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, program(func(context.Context, input) (string, error) {
		return "", errors.New(strings.Repeat("ä", fault.MaxMessage))
	}))
	f := asFault(t, second(worker.Run(t.Context(), `{}`)))
	if len(f.Message) > fault.MaxMessage || !utf8.ValidString(f.Message) {
		t.Errorf("got %d bytes", len(f.Message))
	}
}
