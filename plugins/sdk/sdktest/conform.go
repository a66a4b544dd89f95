package sdktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/schema"
	"github.com/drover-jobs/drover/protocol/task"
)

// Conform checks what every worker owes its manager, with payloads that the worker is to accept; what becomes of them is the
// worker's own business, as long as it is an outcome. It runs each payload twice: to its end, within Patience, and cancelled.
func Conform(t *testing.T, program *sdk.Program, payloads []any, opts ...Option) {
	t.Helper()
	t.Run("describes itself", func(t *testing.T) { describes(t, program, payloads) })
	t.Run("refuses what does not fit", func(t *testing.T) {
		worker := Start(t, program, opts...)
		for _, payload := range []string{`[]`, `null`, `"x"`, `{`, ``} {
			var f *fault.Fault
			if _, err := worker.Run(t.Context(), payload, Unchecked()); !errors.As(err, &f) || f.Kind != fault.InvalidPayload || !f.Permanent {
				t.Errorf("payload %s: got %v; want a permanent fault of kind %v", payload, err, fault.InvalidPayload)
			}
		}
	})
	t.Run("ends every task", func(t *testing.T) {
		worker := Start(t, program, opts...)
		for _, payload := range payloads {
			ctx, cancel := context.WithTimeout(t.Context(), Patience)
			_, err := worker.Run(ctx, payload)
			cancel()
			sound(t, payload, err)
		}
	})
	t.Run("heeds a cancel", func(t *testing.T) {
		worker := Start(t, program, opts...)
		for _, payload := range payloads {
			run := worker.Begin(payload)
			run.Cancel("cancelled")
			late := time.NewTimer(Patience)
			select {
			case <-run.Ended():
				_, err := run.Wait()
				sound(t, payload, err)
			case <-late.C:
				t.Errorf("payload %s: it still ran %s after it was cancelled: watch the context", text(t, payload), Patience)
			}
			late.Stop()
		}
	})
}

// describes checks the manifest.
func describes(t *testing.T, program *sdk.Program, payloads []any) {
	t.Helper()
	if err := program.Err(); err != nil {
		t.Fatal(err)
	}
	worker := Start(t, program, Unconfigured())
	begun := time.Now()
	manifest := worker.Describe()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("Describe took %s; it must answer within a second", took)
	}
	if err := task.CheckName(manifest.GetName()); err != nil {
		t.Error(err)
	}
	if manifest.GetVersion() == "" || manifest.GetDescription() == "" || strings.Contains(manifest.GetDescription(), "\n") {
		t.Errorf("version %q, description %q: say both, the description in one line", manifest.GetVersion(), manifest.GetDescription())
	}
	s, err := schema.Parse(manifest.GetPayloadSchema())
	if err != nil {
		t.Fatal(err)
	}
	for _, payload := range payloads {
		if err := s.Check(text(t, payload)); err != nil {
			t.Errorf("payload %s does not fit the worker's own schema: %v", text(t, payload), err)
		}
	}
}

// sound reports an outcome that no worker may have.
func sound(t *testing.T, payload any, err error) {
	t.Helper()
	var f *fault.Fault
	switch {
	case err == nil:
	case !errors.As(err, &f):
		t.Errorf("payload %s: the worker went without an outcome: %v", text(t, payload), err)
	case f.Kind == fault.Panic || f.Kind == fault.InvalidPayload || f.Kind == fault.Protocol:
		t.Errorf("payload %s: %v\n%s", text(t, payload), f, f.Detail)
	}
}
