package settings_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// problems returns what err complains of; none for nil.
func problems(t *testing.T, err error) []settings.Problem {
	t.Helper()
	if err == nil {
		return nil
	}
	var invalid *settings.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("not an InvalidError: %v", err)
	}
	return invalid.Problems
}

// The table is whole: unique names, a meaning, a default within what is allowed, every field of the structs described.
func TestDescribe(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range settings.Describe() {
		key := string(s.Scope) + " " + s.Name
		if seen[key] {
			t.Errorf("%s is in the table twice", key)
		}
		seen[key] = true
		if s.Meaning == "" || s.Takes == "" || s.Kind == "" || s.Default == "" || s.Allowed() == "" {
			t.Errorf("%s: the row has a gap: %+v", key, s)
		}
		if plain := s.Kind == settings.KindChoice || s.Kind == settings.KindText; plain != (s.Min == "") || (s.Kind == settings.KindText) != (s.Form != "") {
			t.Errorf("%s: range and kind disagree: %+v", key, s)
		}
	}
	for scope, want := range map[settings.Scope]int{settings.ScopeQueue: 21, settings.ScopeManager: 4, settings.ScopeSchedule: 8} {
		if got := len(settings.Names(scope)); got != want {
			t.Errorf("%s has %d settings, want %d", scope, got, want)
		}
	}
	if _, err := settings.ResolveQueue(); err != nil {
		t.Errorf("the queue's defaults do not hold: %v", err)
	}
	if _, err := settings.ResolveManager(); err != nil {
		t.Errorf("the manager's defaults do not hold: %v", err)
	}
	if _, err := settings.ResolveSchedule(settings.Layer{"every": "1h"}); err != nil {
		t.Errorf("a schedule's defaults do not hold: %v", err)
	}
}

// Every bound of the table is itself accepted, and "off" exactly where the row says what it means.
func TestTableBounds(t *testing.T) {
	t.Parallel()
	for _, s := range settings.Describe() {
		// What surrounds the setting leaves it room, so that only its own range is tried.
		room := settings.Layer{"max_workers": "1", "buffer": "0", "retry_backoff": "100ms", "retry_backoff_max": "30d"}
		if s.Name == "min_workers" {
			room["max_workers"] = "1024"
		}
		resolve := func(text string) error {
			if s.Scope == settings.ScopeManager {
				_, err := settings.ResolveManager(settings.Layer{s.Name: text})
				return err
			}
			if s.Scope == settings.ScopeSchedule {
				around := settings.Layer{"every": "366d"}
				switch {
				case s.Name == "cron" && text != "off":
					around = settings.Layer{}
				case s.Name == "every" && text == "off":
					around = settings.Layer{"cron": "@yearly"}
				}
				_, err := settings.ResolveSchedule(around, settings.Layer{s.Name: text})
				return err
			}
			_, err := settings.ResolveQueue(room, settings.Layer{s.Name: text})
			return err
		}
		for _, text := range append([]string{s.Min, s.Max, s.Default}, s.Choices...) {
			if text == "" {
				continue
			}
			if err := resolve(text); err != nil {
				t.Errorf("%s=%s is in the table but refused: %v", s.Name, text, err)
			}
		}
		if err := resolve("off"); (err == nil) != (s.Off != "") {
			t.Errorf("%s=off: %v; the row says %q", s.Name, err, s.Off)
		}
		if err := resolve("\x00 nonsense"); err == nil {
			t.Errorf("%s accepts nonsense", s.Name)
		}
	}
}

// Each layer wins over those before it, and what no layer names has its default.
func TestResolveLayers(t *testing.T) {
	t.Parallel()
	q, err := settings.ResolveQueue(
		settings.Layer{"slots": "8", "task_timeout": "1m", "memory_max": "1GiB"},
		settings.Layer{"slots": "4", "worker_idle": "0"},
		nil,
		settings.Layer{"slots": "2", "rate": "600/m", "priority": "system"},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Queue{
		MaxWorkers: 4, MinWorkers: 0, Slots: 2, Buffer: 16,
		WorkerIdle: 0, MemoryMax: settings.GiB,
		TaskTimeout: time.Minute, KillGrace: 10 * time.Second,
		MaxFailures: 5, MaxKills: 3, RetryBackoff: 5 * time.Second, RetryBackoffMax: time.Hour,
		Rate: settings.Rate{Tasks: 600, Per: time.Minute}, Retention: time.Hour,
		LockPolicy: settings.LockJoin, LockMissing: settings.LockMissingWait, Priority: settings.PrioritySystem,
	}
	if q != want {
		t.Errorf("got  %+v\nwant %+v", q, want)
	}
	if q.Capacity() != 24 {
		t.Errorf("capacity %d, want 24", q.Capacity())
	}
}

// A refusal names the setting, the value and what is allowed, and guesses what was meant.
func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		layer settings.Layer
		want  []string
	}{
		{"too small", settings.Layer{"max_workers": "0"}, []string{`max_workers: "0" is below 1; allowed: a whole number from 1 to 1024`}},
		{"too large", settings.Layer{"max_workers": "1025"}, []string{`max_workers: "1025" is above 1024;`}},
		{"fraction", settings.Layer{"slots": "1.5"}, []string{`slots: "1.5" is not a whole number;`}},
		{"leading zero", settings.Layer{"slots": "010"}, []string{`slots: "010" is not a whole number;`}},
		{"no unit", settings.Layer{"task_timeout": "90"}, []string{`task_timeout: "90" has no unit; write 90s, 90m or 90h; allowed: a duration from 100ms to 7d`}},
		{"wrong unit", settings.Layer{"memory_max": "256M"}, []string{`memory_max: "256M" has the unit "M", which is not known`}},
		{"no off", settings.Layer{"task_timeout": "off"}, []string{`task_timeout: "off" cannot be off;`}},
		{"choice", settings.Layer{"priority": "System"}, []string{`priority: "System" is not one of the choices; did you mean system?; allowed: one of user, system`}},
		{"unknown", settings.Layer{"max-worker": "3"}, []string{`max-worker: is not a setting; did you mean max_workers?`}},
		{"far off", settings.Layer{"colour": "3"}, []string{`colour: is not a setting`}},
		{"min above max", settings.Layer{"min_workers": "5"}, []string{`min_workers: "5" is more than max_workers, which is 4;`}},
		{"soft not below max", settings.Layer{"memory_soft": "1GiB", "memory_max": "1GiB"}, []string{`memory_soft: "1GiB" is not below memory_max, which is 1GiB;`}},
		{"back-off", settings.Layer{"retry_backoff": "2h"}, []string{`retry_backoff: "2h" is more than retry_backoff_max, which is 1h;`}},
		{"capacity", settings.Layer{"max_workers": "512", "slots": "128"}, []string{`max_workers: "512" makes the queue hold 65552 tasks (slots 128 * max_workers 512 + buffer 16); allowed: slots * max_workers + buffer up to 65536`}},
		{"all at once", settings.Layer{"buffer": "-1", "kill_grace": "1ms", "min_workers": "9", "nope": ""}, []string{
			`buffer: "-1"`, `kill_grace: "1ms"`, `nope: is not a setting`, `min_workers: "9"`,
		}},
		{"no rule on what cannot be read", settings.Layer{"min_workers": "9", "max_workers": "x"}, []string{`max_workers: "x" is not`}},
	}
	for _, tt := range tests {
		_, err := settings.ResolveQueue(tt.layer)
		got := problems(t, err)
		if len(got) != len(tt.want) {
			t.Errorf("%s: got %d problems, want %d: %v", tt.name, len(got), len(tt.want), err)
			continue
		}
		for i, want := range tt.want {
			if !strings.HasPrefix(got[i].String(), want) {
				t.Errorf("%s:\n got %s\nwant %s...", tt.name, got[i], want)
			}
		}
	}
}

// A value that a higher layer hides is still checked, so that it cannot come to light later.
func TestResolveChecksHiddenValues(t *testing.T) {
	t.Parallel()
	_, err := settings.ResolveQueue(settings.Layer{"slots": "many"}, settings.Layer{"slots": "4"})
	if got := problems(t, err); len(got) != 1 || got[0].Name != "slots" || got[0].Value != "many" {
		t.Errorf("got %v", err)
	}
}

// What was meant is found through a slip of the finger, and nothing is suggested when nothing is near.
func TestNearest(t *testing.T) {
	t.Parallel()
	names := settings.Names(settings.ScopeQueue)
	for word, want := range map[string]string{
		"max_workrs": "max_workers", "maxworkers": "max_workers", "MAX-WORKERS": "max_workers", "bufer": "buffer",
		"retry_bakcoff": "retry_backoff", "timeout": "", "": "", "x": "", strings.Repeat("y", 5000): "",
	} {
		if got := settings.Nearest(word, names); got != want {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
	if !slices.Contains(names, "retention") {
		t.Error("the names are not those of the table")
	}
}
