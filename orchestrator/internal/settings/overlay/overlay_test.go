package overlay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/orchestrator/internal/settings/overlay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sample() settings.Overlay {
	return settings.Overlay{
		Manager:   settings.Layer{"max_memory": "1GiB"},
		Queues:    map[string]settings.Layer{"feed-pull": {"max_workers": "8", "rate": "off"}, "123": {"slots": "010"}, "off": {"buffer": `"x`}},
		Schedules: map[string]settings.Layer{"nightly": {"cron": "30 2 * * *", "payload": `{"a":"b: c"}`}},
	}
}

// What was written is read back as it was, whatever YAML would make of it; only its owner can read the file, and it says who
// wrote it and when, in comments that a name cannot leave.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	for _, o := range []settings.Overlay{sample(), {}, {Manager: settings.Layer{"a": "b"}}} {
		if err := overlay.Write(path, o, "kim\nmanager: {evil: 1}\u2028x", time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		again, err := overlay.Read(path)
		if err != nil || !again.Equal(o) {
			t.Errorf("read %+v, %v; wrote %+v", again, err, o)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), "kim") || !strings.Contains(string(data), "1970-01-01T00:00:00Z") {
		t.Errorf("%s, %v", data, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// A file that is not there says nothing.
func TestNone(t *testing.T) {
	t.Parallel()
	if o, err := overlay.Read(filepath.Join(t.TempDir(), "settings.yaml")); err != nil || o.Len() != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// A broken file is an error that says where; the next write puts it aside, with all that is in it.
func TestBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"syntax":   {"queues: {a: [", "settings.yaml"},
		"section":  {"queue: {a: {}}", `"queue" is not known`},
		"scalar":   {"just text", "line 1"},
		"list":     {"queues:\n  a: [1]\n", "line 2"},
		"nested":   {"queues:\n  a:\n    slots: {x: 1}\n", "line 3"},
		"twice":    {"queues:\n  a:\n    slots: 1\n    slots: 2\n", "line 4"},
		"several":  {"manager: {}\n---\nmanager: {}\n", "more than one"},
		"too much": {"# " + strings.Repeat("x", 1<<20) + "\nmanager: {}\n", "larger"},
	} {
		path := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := overlay.Read(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err := overlay.Write(path, sample(), "kim", time.Now()); err != nil {
			t.Errorf("%s: write: %v", name, err)
		}
		if again, err := overlay.Read(path); err != nil || !again.Equal(sample()) {
			t.Errorf("%s: after the write %+v, %v", name, again, err)
		}
		if aside, err := os.ReadFile(path + ".broken"); err != nil || string(aside) != c.text {
			t.Errorf("%s: put aside %.40q, %v", name, aside, err)
		}
	}
}

// A write that fails leaves the old file whole.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.Mkdir(path, 0o700); err != nil { // in its way
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".broken", nil, 0o600); err != nil { // and nowhere to put it
		t.Fatal(err)
	}
	if err := overlay.Write(path, sample(), "kim", time.Now()); err == nil {
		t.Error("it was written over a folder")
	}
	if err := overlay.Write(filepath.Join(t.TempDir(), "gone", "settings.yaml"), sample(), "kim", time.Now()); err == nil {
		t.Error("it was written to a folder that is not there")
	}
}

// Whatever lies in the file, reading it ends, and what it gives can be written and read back.
func FuzzRead(f *testing.F) {
	f.Add([]byte("queues: {a: {slots: 1}}\nmanager: {x: &a y, z: *a}"))
	f.Add([]byte("? [a]\n: b"))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := overlay.Read(path)
		if err != nil {
			return
		}
		if err := overlay.Write(path, o, "x", time.Now()); err != nil {
			t.Fatal(err)
		}
		if again, err := overlay.Read(path); err != nil || !again.Equal(o) {
			t.Errorf("%q was read as %+v, then as %+v, %v", data, o, again, err)
		}
	})
}
