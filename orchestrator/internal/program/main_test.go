package program_test

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/orchestrator/internal/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a program in a directory of its own, and the store beside it.
type bench struct {
	t     *testing.T
	dir   string
	path  string
	store *program.Store
	file  *program.File
}

func newBench(t *testing.T, text, pin string) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{t: t, dir: filepath.Join(dir, "programs"), path: filepath.Join(dir, "worker")}
	b.store = program.NewStore(b.dir, slog.New(slog.DiscardHandler))
	b.file = b.store.Open(b.path, pin)
	if text != "" {
		b.replace(text)
	}
	return b
}

// replace puts another file in place of the program.
func (b *bench) replace(text string) {
	b.t.Helper()
	b.write(b.path+".new", text)
	if err := os.Rename(b.path+".new", b.path); err != nil {
		b.t.Fatal(err)
	}
}

// write writes into a file, which it makes if there is none.
func (b *bench) write(path, text string) {
	b.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		b.t.Fatal(err)
	}
}

// current wants a current version with a content, to be started from its own path or from its copy.
func (b *bench) current(text string, fromCopy bool) {
	b.t.Helper()
	v, err := b.file.Current()
	if err != nil {
		b.t.Fatal(err)
	}
	want := b.path
	if fromCopy {
		want = b.copyOf(text)
	}
	if v.Sum != sum(text) || v.Path != want || v.Since.IsZero() {
		b.t.Errorf("current is %+v, want the sum of %q and the path %s", v, text, want)
	}
	data, err := os.ReadFile(v.Path)
	if err != nil || string(data) != text {
		b.t.Errorf("what would be started is %q, %v; want %q", data, err, text)
	}
}

// settled reports what the second of two looks says.
func (b *bench) settled() bool {
	b.t.Helper()
	if b.file.Changed() {
		b.t.Error("it has changed at the first look, when it may still be written")
	}
	return b.file.Changed()
}

// take wants a new version on trial.
func (b *bench) take(text string) {
	b.t.Helper()
	v, isNew, err := b.file.Take()
	if err != nil || !isNew || v.Sum != sum(text) {
		b.t.Fatalf("taken is %+v, new: %v, %v", v, isNew, err)
	}
}

func (b *bench) copyOf(text string) string { return filepath.Join(b.dir, sum(text)) }

// copies wants exactly the copies of these contents.
func (b *bench) copies(texts ...string) {
	b.t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	want := map[string]bool{}
	for _, text := range texts {
		want[sum(text)] = true
	}
	for _, e := range entries {
		if !want[e.Name()] {
			b.t.Errorf("there is %s", e.Name())
		}
		delete(want, e.Name())
	}
	if len(want) > 0 {
		b.t.Errorf("there is none of %v", want)
	}
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// native is what looks like a native program, script what does not.
func native(version string) string { return "\x7fELF" + version }
func script(version string) string { return "#!/bin/sh\n# " + version }
