package conform_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk/sdktest/conform"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest/launch"
	"github.com/drover-jobs/drover/protocol/schema"
)

// subject is this test binary as a worker with a flaw.
func subject(t *testing.T, flaw string) conform.Subject {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := func(inherit bool) func(context.Context) (conform.Life, error) {
		return func(ctx context.Context) (conform.Life, error) {
			// A program under the race detector sleeps a second at its end unless it is told not to.
			p, err := launch.Start(ctx, launch.Spec{Command: []string{self}, Env: []string{flawVariable + "=" + flaw, "GORACE=atexit_sleep_ms=0"}, Inherit: inherit})
			if err != nil {
				return nil, err
			}
			return p, nil
		}
	}
	return conform.Subject{
		Start: start(false), Inherit: start(true), TaskTimeout: 3 * time.Second, EndTimeout: 3 * time.Second,
		Payloads: []json.RawMessage{json.RawMessage(`{"ms":150}`)},
		Slow:     json.RawMessage(`{"ms":60000}`), Panic: json.RawMessage(`{"ms":1,"panic":true}`),
	}
}

// run runs the kit and returns the results by check, and the names of those that failed, sorted.
func run(t *testing.T, s conform.Subject) (results map[string]conform.Result, failed []string) {
	t.Helper()
	results = map[string]conform.Result{}
	sound := conform.Run(t.Context(), s, func(r conform.Result) {
		results[r.Check] = r
		if r.State == conform.Fail {
			failed = append(failed, r.Check)
			if r.Seen == "" || r.Advice == "" {
				t.Errorf("%s fails with seen %q and advice %q", r.Check, r.Seen, r.Advice)
			}
		}
	})
	if sound != (len(failed) == 0) {
		t.Errorf("sound is %v, and %q failed", sound, failed)
	}
	slices.Sort(failed)
	return results, failed
}

// A worker without a flaw passes everything that can be tested with it, also one that is written without the SDK.
func TestSoundWorker(t *testing.T) {
	t.Parallel()
	results, failed := run(t, subject(t, noFlaw))
	if len(failed) > 0 {
		t.Errorf("failed: %+v", results)
	}
	for name, r := range results {
		if r.State != conform.Pass && name != "output" {
			t.Errorf("%s: %s: %s", name, r.State, r.Seen)
		}
	}
}

// Each flaw is found by the check that is there for it, and named.
func TestFlaws(t *testing.T) {
	t.Parallel()
	for flaw, want := range map[string]struct{ check, seen string }{
		chatty:          {"handshake", "hello world"},
		nameless:        {"describe", "max_wokers"},
		speechless:      {"options", "an option that it does not know"},
		unfinished:      {"task", "no outcome"},
		twofold:         {"task", "not open"},
		notJSON:         {"task", "is not JSON"},
		trusting:        {"schema", "got a result"},
		fragile:         {"schema", "which the schema refuses"},
		greedy:          {"unknown", "got a result"},
		exitsOnAnything: {"unknown", "the Work stream has ended"},
		overdone:        {"progress", "3 of 2"},
		stubborn:        {"cancel", "still ran 1s after"},
		oneAtATime:      {"slots", "of 2 had not begun"},
		silentPanic:     {"panic", "the Work stream has ended"},
		clinging:        {"drain", "it still lived"},
		failing:         {"drain", "exit code 3"},
		handsBack:       {"drain", "handed back"},
		deaf:            {"sigterm", "it still lived"},
		orphan:          {"lifeline", "it still lived"},
		leavesAChild:    {"lifeline", "what it had started still lived"},
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			results, failed := run(t, subject(t, flaw))
			if r := results[want.check]; r.State != conform.Fail || !strings.Contains(r.Seen, want.seen) {
				t.Errorf("%s: %s, %q; want it to fail with %q", want.check, r.State, r.Seen, want.seen)
			}
			// A worker whose outcomes are no good fails more than one check.
			if len(failed) > 1 && flaw != twofold && flaw != notJSON {
				t.Errorf("failed besides: %q", failed)
			}
		})
	}
}

// A worker that starts only with a person's environment is told which promise it breaks.
func TestNeedyWorker(t *testing.T) {
	t.Parallel()
	if os.Getenv("HOME") == "" {
		t.Fatal("this test needs the variable HOME")
	}
	results, failed := run(t, subject(t, needy))
	if !slices.Equal(failed, []string{"environment", "handshake"}) || !strings.Contains(results["handshake"].Seen, "HOME is not set") {
		t.Errorf("failed %q: %+v", failed, results["handshake"])
	}
	if r := results["task"]; r.State != conform.NotTested || r.Seen == "" {
		t.Errorf("task: %+v", r)
	}
}

// What cannot be tested is not called passed: without a slow, a noisy and a panicking task, and after an interruption.
func TestNotTested(t *testing.T) {
	t.Parallel()
	s := subject(t, noFlaw)
	s.Payloads, s.Slow, s.Panic = nil, nil, nil
	results, failed := run(t, s)
	if len(failed) > 0 || results["task"].State != conform.Pass {
		t.Errorf("failed %q, task %+v", failed, results["task"])
	}
	for _, name := range []string{"panic", "output"} {
		if r := results[name]; r.State != conform.NotTested || !strings.Contains(r.Seen, "--") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	conform.Run(ctx, subject(t, noFlaw), func(r conform.Result) {
		if r.State != conform.NotTested {
			t.Errorf("after an interruption: %+v", r)
		}
	})
}

// An example fits the schema that it is made from, or there is none.
func TestExample(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``: `{}`, `{"type":"object"}`: `{}`, `{"examples":[{"a":1}]}`: `{"a":1}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`:                                               `{"a":"example"}`,
		`{"type":"object","properties":{"a":{"type":["null","array"],"minItems":2,"items":{"type":"boolean"}}},"required":["a"]}`:                      `{"a":[false,false]}`,
		`{"properties":{"a":{"type":"integer","minimum":7},"b":{"enum":["x","y"]},"c":{"type":"string","maxLength":3}},"required":["a","b","c"]}`:      `{"a":7,"b":"x","c":"exa"}`,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"u":{"type":"string","format":"uri"}},"required":["u"]}},"required":["a"]}`: `{"a":{"u":"http://127.0.0.1:9/"}}`,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}},"required":["a"]}`:                                                       ``,
		`{"type":"object","required":["a"]}`: ``, `{"type":"array"}`: ``, `{`: ``, `{"examples":[7]}`: ``,
	} {
		got, err := conform.Example(text)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
}

// No schema makes the search for an example fail in another way than with an error, and what is found fits.
func FuzzExample(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"array","minItems":3,"items":{"type":"string","minLength":2}}},"required":["a"]}`)
	f.Add(`{"type":"object","properties":{"a":{"type":"string","minLength":-1,"maxLength":-2}},"required":["a"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		payload, err := conform.Example(text)
		if err != nil {
			return
		}
		s, err := schema.Parse(text)
		if err != nil {
			t.Fatalf("an example for a schema that is not sound: %v", err)
		}
		if err := s.Check(payload); err != nil {
			t.Errorf("%s does not fit %s: %v", payload, text, err)
		}
	})
}
