package sdktest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest/conform"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest/launch"
)

// Conform checks what every worker owes its manager, with payloads that the worker is to accept; what becomes of them is the
// worker's own business, as long as it is an outcome, within conform.DefaultTaskTimeout. The worker is served in memory, so
// that nothing is said about its process: ConformCommand does that. Of opts, Options, Slots and Queue count, and those that
// give tasks for certain checks: Slow, Noisy, Panic.
func Conform(t *testing.T, program *sdk.Program, payloads []any, opts ...Option) {
	t.Helper()
	if err := program.Err(); err != nil {
		t.Fatal(err)
	}
	s := subject(t, payloads, opts)
	s.Start = func(context.Context) (conform.Life, error) { return serve(program) }
	judge(t, s)
}

// ConformCommand does what Conform does with a program that is started as a manager starts it: the command is the program and
// its arguments, without a shell, in the test's working directory.
func ConformCommand(t *testing.T, command []string, payloads []any, opts ...Option) {
	t.Helper()
	s := subject(t, payloads, opts)
	spec := launch.Spec{Command: command}
	s.Start = func(ctx context.Context) (conform.Life, error) { return begin(ctx, spec) }
	s.Inherit = func(ctx context.Context) (conform.Life, error) {
		whole := spec
		whole.Inherit = true
		return begin(ctx, whole)
	}
	judge(t, s)
}

// begin keeps a nil process from becoming a life.
func begin(ctx context.Context, spec launch.Spec) (conform.Life, error) {
	p, err := launch.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Slow gives Conform a payload whose task takes long, some seconds at least.
func Slow(t testing.TB, payload any) Option {
	t.Helper()
	p := text(t, payload)
	return func(o *options) { o.slow = p }
}

// Noisy gives ConformCommand a payload whose task writes 1 MiB or more without a line's end.
func Noisy(t testing.TB, payload any) Option {
	t.Helper()
	p := text(t, payload)
	return func(o *options) { o.noisy = p }
}

// Panic gives Conform a payload whose task panics.
func Panic(t testing.TB, payload any) Option {
	t.Helper()
	p := text(t, payload)
	return func(o *options) { o.panic = p }
}

func subject(t *testing.T, payloads []any, opts []Option) conform.Subject {
	t.Helper()
	var o options
	for _, option := range opts {
		option(&o)
	}
	s := conform.Subject{Queue: o.config.Queue, Options: o.config.Options, Slots: o.config.Slots, Slow: o.slow, Noisy: o.noisy, Panic: o.panic}
	for _, payload := range payloads {
		s.Payloads = append(s.Payloads, json.RawMessage(text(t, payload)))
	}
	return s
}

// judge runs the checks as tests of their own.
func judge(t *testing.T, s conform.Subject) {
	t.Helper()
	conform.Run(t.Context(), s, func(r conform.Result) {
		t.Run(strings.ReplaceAll(r.Check, " ", "_"), func(t *testing.T) {
			switch r.State {
			case conform.Fail:
				t.Errorf("a worker's promise: %s\nwhat was seen: %s\nwhat to do: %s", r.Expected, r.Seen, r.Advice)
			case conform.NotTested:
				t.Skip("not tested: " + r.Seen)
			case conform.Pass:
				t.Log(r.Seen)
			}
		})
	})
}
