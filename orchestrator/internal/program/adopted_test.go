package program_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/program"
)

// restart is the store as the next manager finds it.
func (b *bench) restart(pin string) {
	b.store = program.NewStore(b.dir, slog.New(slog.DiscardHandler))
	b.file = b.store.Open(b.path, pin)
}

// prove says that the current version works.
func (b *bench) prove() {
	b.t.Helper()
	v, err := b.file.Current()
	if err != nil {
		b.t.Fatal(err)
	}
	b.file.Prove(v)
}

// A version that worked is what the next manager goes on from when the file does not work, or is gone; the file is taken when it changes.
func TestRecall(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(b *bench){
		"another":  func(b *bench) { b.replace(native("bad")) },
		"a script": func(b *bench) { b.replace(script("bad")) },
		"gone": func(b *bench) {
			if err := os.Remove(b.path); err != nil {
				b.t.Fatal(err)
			}
		},
		"the same": func(*bench) {}, // it was not executable, say
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, native("1"), "")
			b.prove()
			spoil(b)
			b.restart("")
			_, _ = b.file.Current() // it is tried first
			b.store.Prune()
			if v, ok := b.file.Recall(); !ok || v.Sum != sum(native("1")) || v.Path != b.copyOf(native("1")) {
				t.Fatalf("recalled is %+v, %v", v, ok)
			}
			b.current(native("1"), true)
			b.store.Prune()
			b.current(native("1"), true)
			if b.settled() {
				t.Error("the file that did not work is tried again though it is the same")
			}
			b.replace(native("2"))
			if !b.settled() {
				t.Fatal("the repaired file has not changed")
			}
			b.take(native("2"))
			b.file.Adopt()
			b.current(native("2"), false)
		})
	}
}

// Only what worked, is whole, and is not another than the pinned one is gone on from. What does not work either is forgotten.
func TestNoRecall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pin   string
		spoil func(b *bench)
	}{
		"never proven": {"", func(b *bench) { _ = os.Remove(filepath.Join(b.dir, "adopted.json")) }},
		"not readable": {"", func(b *bench) { b.write(filepath.Join(b.dir, "adopted.json"), "{") }},
		"not a sum":    {"", func(b *bench) { b.write(filepath.Join(b.dir, "adopted.json"), `{"`+b.path+`":"../worker"}`) }},
		"copy gone":    {"", func(b *bench) { _ = os.Remove(b.copyOf(native("1"))) }},
		"copy spoilt": {"", func(b *bench) {
			_ = os.Remove(b.copyOf(native("1")))
			b.write(b.copyOf(native("1")), native("evil"))
		}},
		"pinned to another": {sum(native("3")), func(*bench) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, native("1"), "")
			b.prove()
			c.spoil(b)
			b.replace(native("bad"))
			b.restart(c.pin)
			if v, ok := b.file.Recall(); ok {
				t.Errorf("recalled is %+v", v)
			}
		})
	}
	b := newBench(t, native("1"), "")
	b.prove()
	b.replace(native("bad"))
	b.restart("")
	if _, ok := b.file.Recall(); !ok {
		t.Fatal("nothing is recalled")
	}
	b.file.Forget()
	b.current(native("bad"), false)
}
