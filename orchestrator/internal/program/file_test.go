package program_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/program"
)

// A program is started by its own path as long as it is what it was; its copy is there for the day when it is not, for the manager's
// user alone.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	b := newBench(t, native("1"), "")
	for range 3 {
		b.current(native("1"), false)
		if b.settled() {
			t.Error("it has changed")
		}
	}
	b.copies(native("1"))
	if info, err := os.Stat(b.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(b.copyOf(native("1"))); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("the copy: %v, %v", info.Mode(), err)
	}
}

// changes are the ways in which a program is changed.
func changes() map[string]func(b *bench, text string) {
	return map[string]func(b *bench, text string){
		"renamed over": func(b *bench, text string) { b.replace(text) },
		"overwritten":  func(b *bench, text string) { b.write(b.path, text) },
		"with its old times": func(b *bench, text string) {
			before, err := os.Stat(b.path)
			if err != nil {
				b.t.Fatal(err)
			}
			b.write(b.path, text)
			if err := os.Chtimes(b.path, before.ModTime(), before.ModTime()); err != nil {
				b.t.Fatal(err)
			}
		},
		"deleted and made anew": func(b *bench, text string) {
			if err := os.Remove(b.path); err != nil {
				b.t.Fatal(err)
			}
			b.write(b.path, text)
		},
	}
}

// A changed program is noticed however it came, and until it is adopted the old one is started.
func TestAdopt(t *testing.T) {
	t.Parallel()
	for name, change := range changes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, native("1"), "")
			b.current(native("1"), false)
			change(b, native("2"))
			if !b.settled() {
				t.Fatal("it has not changed")
			}
			b.current(native("1"), true)
			b.take(native("2"))
			if b.settled() {
				t.Error("it has changed again while on trial")
			}
			b.current(native("1"), true)
			b.file.Adopt()
			b.current(native("2"), false)
			b.copies(native("2"))
		})
	}
}

// The way back: a rejected version is not started again, and not tried again, until the file is touched or changed.
func TestReject(t *testing.T) {
	t.Parallel()
	b := newBench(t, native("1"), "")
	b.current(native("1"), false)
	b.replace(native("bad"))
	if !b.settled() {
		t.Fatal("it has not changed")
	}
	b.take(native("bad"))
	if !b.file.Reject() {
		t.Error("there is no way back")
	}
	b.current(native("1"), true)
	b.copies(native("1"))
	if b.settled() {
		t.Error("the rejected version is tried again")
	}
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(b.path, later, later); err != nil {
		t.Fatal(err)
	}
	if !b.settled() {
		t.Error("it was touched, and is not tried again")
	}
	b.take(native("bad"))
	b.file.Reject()
	b.replace(native("1"))
	if !b.settled() {
		t.Error("the old version came back unnoticed")
	}
	if v, isNew, err := b.file.Take(); err != nil || isNew || v.Path != b.path {
		t.Errorf("what came back is %+v, new: %v, %v", v, isNew, err)
	}
	b.current(native("1"), false)
}

// A program that is deleted is started from its copy, and one that comes back is noticed.
func TestDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, native("1"), "")
	b.current(native("1"), false)
	if err := os.Remove(b.path); err != nil {
		t.Fatal(err)
	}
	if b.settled() {
		t.Error("a program that is gone has changed")
	}
	b.current(native("1"), true)
	b.write(b.path, native("2"))
	if !b.settled() {
		t.Error("it has not changed")
	}
}

// A file that goes on changing is left alone until it rests.
func TestBeingWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, native("1"), "")
	b.current(native("1"), false)
	for i := range 5 {
		b.write(b.path, native("part"+strings.Repeat("x", i)))
		if b.file.Changed() {
			t.Error("it is said to have changed while it is being written")
		}
	}
	if !b.file.Changed() {
		t.Error("it has not changed")
	}
}

// A pinned native program is started from what was checked, whatever happens to its file; another one is refused with both sums.
func TestPinned(t *testing.T) {
	t.Parallel()
	b := newBench(t, native("1"), strings.ToUpper(sum(native("1"))))
	b.current(native("1"), true)
	b.write(b.path, native("evil"))
	b.current(native("1"), true)
	if !b.settled() {
		t.Error("it has not changed")
	}
	_, _, err := b.file.Take()
	for _, want := range []string{sum(native("1")), sum(native("evil")), "correct sha256"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
	if b.settled() {
		t.Error("the refused program is looked at again though it is the same")
	}
	b.current(native("1"), true)
	b.copies(native("1"))
}

// A pinned program that is wrong from the start is refused, at every start, until it is right.
func TestPinnedWrongly(t *testing.T) {
	t.Parallel()
	for _, kind := range []func(string) string{native, script} {
		b := newBench(t, kind("evil"), sum(kind("1")))
		for range 2 {
			if v, err := b.file.Current(); err == nil || !strings.Contains(err.Error(), "is not the one that the configuration asks for") {
				t.Fatalf("%+v, %v", v, err)
			}
		}
		b.replace(kind("1"))
		if _, err := b.file.Current(); err != nil {
			t.Error(err)
		}
	}
}

// A pinned script has no copy: it is checked at each start.
func TestPinnedScript(t *testing.T) {
	t.Parallel()
	b := newBench(t, script("1"), sum(script("1")))
	b.current(script("1"), false)
	b.write(b.path, script("2"))
	if v, err := b.file.Current(); err == nil {
		t.Errorf("%+v", v)
	}
	b.write(b.path, script("1"))
	b.current(script("1"), false)
}

// A script has no copy, so there is no way back from what it is now.
func TestScript(t *testing.T) {
	t.Parallel()
	b := newBench(t, script("1"), "")
	b.current(script("1"), false)
	b.write(b.path, script("2"))
	if !b.settled() {
		t.Fatal("it has not changed")
	}
	b.take(script("2"))
	if b.file.Reject() {
		t.Error("there is a way back")
	}
	b.current(script("2"), false)
}

// A program that is missing, or no file, is an error that says what to do, and is found when it comes.
func TestMissing(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", "")
	if _, err := b.file.Current(); err == nil || !strings.Contains(err.Error(), "put it there") {
		t.Error(err)
	}
	if err := os.Mkdir(b.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := b.file.Current(); err == nil || !strings.Contains(err.Error(), "it is no file") {
		t.Error(err)
	}
	if b.settled() {
		t.Error("what never was has changed")
	}
	if err := os.Remove(b.path); err != nil {
		t.Fatal(err)
	}
	b.write(b.path, native("1"))
	b.current(native("1"), false)
}

// Without room for copies, programs are started by their own path, and a new version is all there is.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t, native("1"), "")
	b.write(b.dir, "a file where the directory should be")
	var warnings strings.Builder
	b.store = program.NewStore(b.dir, slog.New(slog.NewTextHandler(&warnings, nil)))
	b.file = b.store.Open(b.path, sum(native("1")))
	b.current(native("1"), false)
	if !strings.Contains(warnings.String(), "there is no way back") {
		t.Errorf("it warns: %q", warnings.String())
	}
	b.write(b.path, native("2"))
	if v, err := b.file.Current(); err == nil {
		t.Errorf("a pinned program without a copy was not checked: %+v", v)
	}
}

// A copy that an earlier manager left is used when it is right and made anew when it is not; one that disappears is made again.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	b := newBench(t, native("1"), sum(native("1")))
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	b.write(b.copyOf(native("1")), native("spoilt"))
	b.write(filepath.Join(b.dir, "new-123"), "half a cop")
	b.write(filepath.Join(b.dir, sum("old")), "old")
	b.current(native("1"), true)
	b.store.Prune()
	b.copies(native("1"))
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	b.current(native("1"), true)
}

// A program that runs can be read and copied; its copy runs under the name of the original, also right after it was made, and an
// overwrite of the original, which the kernel refuses while that runs, works while only the copy does.
func TestRunningProgram(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", "")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(sleep) //nolint:gosec // found by the system
	if err != nil {
		t.Fatal(err)
	}
	if sleep, err = filepath.EvalSymlinks(sleep); err != nil || strings.Contains(filepath.Base(sleep), "box") {
		t.Skip("sleep goes by its name here")
	}
	b.write(b.path, string(data))
	b.file = b.store.Open(b.path, sum(string(data)))
	for range 20 {
		v, err := b.file.Current()
		if err != nil || v.Path == b.path {
			t.Fatalf("%+v, %v", v, err)
		}
		cmd := exec.Command(v.Path, "600") //nolint:gosec // made here
		cmd.Args[0] = b.path
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		b.write(b.path, string(data))
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	}
}

// Starts, looks and judgements may come at once.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, native("1"), "")
	another := b.store.Open(b.path, "")
	b.current(native("1"), false)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 50 {
				switch v, err := another.Current(); {
				case i == 0:
					b.replace(native(strings.Repeat("x", n%3)))
				case err != nil || v.Path == "":
					t.Errorf("%+v, %v", v, err)
				}
				if b.file.Changed() {
					if _, isNew, err := b.file.Take(); err == nil && isNew {
						b.file.Adopt()
					}
				}
			}
		})
	}
	all.Wait()
}
