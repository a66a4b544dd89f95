package orchestrator_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/orchestrator"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// Whatever bytes stand in the file, the answer is a valid configuration or a list of reasons.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		goodConfig, "", "a: *b", "a: &a [*a]", "<<: {a: b}", "? [x]\n: y", "redis: {embedded: true}\n---\n", "- - -", "\x00", "!!map x", "queues: {a: {slots: !!int x}}",
		"plugins: {p: {options: {a: 1e999, b: 0x, c: !!float 1_0, d: 1e-400, e: !!null x}}}", strings.Repeat("[", 2000), "\"\\uD800\": 1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := orchestrator.Parse("f", data)
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Fatalf("accepted, then refused: %v", err)
			}
			for name, p := range c.Plugins {
				if !json.Valid(p.Options) || p.Options[0] != '{' {
					t.Fatalf("the options of %s are no JSON object: %s", name, p.Options)
				}
			}
			if _, err := settings.NewStore(c.Source(), slog.New(slog.DiscardHandler)); err != nil {
				t.Fatalf("accepted, but makes no store: %v", err)
			}
			return
		}
		var invalid *orchestrator.ConfigError
		if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
			t.Fatalf("refused without a reason: %v", err)
		}
		for _, p := range invalid.Problems {
			if p.Reason == "" || strings.ContainsAny(p.String(), "\n\r") {
				t.Fatalf("not one line with a reason: %q", p.String())
			}
		}
	})
}
