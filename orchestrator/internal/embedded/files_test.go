package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
)

// twoGenerations leaves a directory whose previous snapshot says "old" and whose newest says "new".
func twoGenerations(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, v := range []string{"old", "new"} {
		b := start(t, embedded.Options{Dir: dir})
		if err := b.client(t).Set(context.Background(), "generation", v, 0).Err(); err != nil {
			t.Fatal(err)
		}
		b.stop(t)
	}
	return dir
}

func names(t *testing.T, dir, part string) (out []string) {
	t.Helper()
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir(dir)) {
		if strings.Contains(e.Name(), part) {
			out = append(out, e.Name())
		}
	}
	return out
}

// A damaged snapshot, however it is damaged, is kept under another name and named in the log, the
// one before it is used, and the next snapshots are written as ever.
func TestDamagedSnapshotIsSetAside(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"empty":           func([]byte) []byte { return nil },
		"cut in header":   func(b []byte) []byte { return b[:40] },
		"cut in content":  func(b []byte) []byte { return b[:len(b)-1] },
		"longer":          func(b []byte) []byte { return append(b, 0) },
		"one bit":         func(b []byte) []byte { b[len(b)-3] ^= 1; return b },
		"another program": func(b []byte) []byte { return append([]byte("REDIS0011"), b...) },
		"date":            func(b []byte) []byte { b[20] ^= 1; return b },
		"zeros":           func(b []byte) []byte { return make([]byte, len(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			dir := twoGenerations(t)
			path := filepath.Join(dir, "redis.snapshot")
			bad := damage(must[[]byte](t)(os.ReadFile(path)))
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			b := start(t, embedded.Options{Dir: dir})
			c := b.client(t)
			if v, err := c.Get(ctx, "generation").Result(); err != nil || v != "old" {
				t.Errorf("generation is %q, %v; want old", v, err)
			}
			aside := names(t, dir, ".damaged-")
			if len(aside) != 1 {
				t.Fatalf("set aside: %v", aside)
			}
			if kept := must[[]byte](t)(os.ReadFile(filepath.Join(dir, aside[0]))); !bytes.Equal(kept, bad) {
				t.Error("the damaged file was changed")
			}
			if b.log.count(aside[0]) != 1 {
				t.Error("the log does not name it")
			}
			c.Set(ctx, "generation", "next", 0)
			b.stop(t)
			if v := start(t, embedded.Options{Dir: dir}).client(t).Get(ctx, "generation").Val(); v != "next" {
				t.Errorf("after a further start generation is %q", v)
			}
		})
	}
}

// When both snapshots are damaged both are kept for a person, and the broker starts empty.
func TestBothDamaged(t *testing.T) {
	t.Parallel()
	dir := twoGenerations(t)
	for _, name := range []string{"redis.snapshot", "redis.snapshot.previous"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := start(t, embedded.Options{Dir: dir})
	if n := b.client(t).DBSize(context.Background()).Val(); n != 0 {
		t.Errorf("%d keys", n)
	}
	if aside := names(t, dir, ".damaged-"); len(aside) != 2 {
		t.Errorf("set aside: %v", aside)
	}
}

// A crash between the two renames, or in the middle of writing, leaves a directory that starts
// with a whole snapshot.
func TestCrashWhileWriting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		crash func(dir string) error
		want  string
	}{
		"half a temporary file": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "redis.snapshot.tmp"), []byte("DROVERSN"), 0o600)
		}, "new"},
		"second name given": {func(dir string) error {
			return os.Link(filepath.Join(dir, "redis.snapshot"), filepath.Join(dir, "redis.snapshot.previous.tmp"))
		}, "new"},
		"newest moved away": {func(dir string) error {
			return os.Rename(filepath.Join(dir, "redis.snapshot"), filepath.Join(dir, "redis.snapshot.previous"))
		}, "new"},
		"newest missing": {func(dir string) error { return os.Remove(filepath.Join(dir, "redis.snapshot")) }, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			dir := twoGenerations(t)
			if err := c.crash(dir); err != nil {
				t.Fatal(err)
			}
			b := start(t, embedded.Options{Dir: dir})
			if v := b.client(t).Get(ctx, "generation").Val(); v != c.want {
				t.Errorf("generation is %q, want %q", v, c.want)
			}
			b.client(t).Set(ctx, "generation", "next", 0)
			b.stop(t)
			if left := names(t, dir, ".tmp"); len(left) != 0 {
				t.Errorf("left over: %v", left)
			}
			if v := start(t, embedded.Options{Dir: dir}).client(t).Get(ctx, "generation").Val(); v != "next" {
				t.Errorf("after a further start generation is %q", v)
			}
		})
	}
}

// A snapshot of a newer version is not damage: the broker does not start and leaves it alone.
func TestNewerFormatIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "redis.snapshot")
	raw := embedded.File(nil, time.Now())
	raw[11] = embedded.FormatVersion + 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	b := must[*embedded.Broker](t)(embedded.New(embedded.Options{Dir: dir}))
	if err := b.Run(context.Background()); !errors.Is(err, embedded.ErrNewerFormat()) {
		t.Errorf("Run: %v", err)
	}
	if now := must[[]byte](t)(os.ReadFile(path)); !bytes.Equal(now, raw) {
		t.Error("the file was touched")
	}
}

// When nothing can be written the broker serves on, says so once in the log and in Err, tries
// again, and says once that all is well.
func TestUnwritableDirectory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir, SnapshotEvery: 10 * time.Millisecond})
	c := b.client(t)
	// A directory in the place of the temporary file stops root as well.
	block := filepath.Join(dir, "redis.snapshot.tmp")
	if err := os.MkdirAll(filepath.Join(block, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	tries := 0
	until(t, "the broker notices", func() bool {
		tries++
		return c.Set(ctx, "k", tries, 0).Err() == nil && b.Err() != nil
	})
	for range 50 {
		if err := c.Set(ctx, "k", "last", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if b.Err() == nil {
			t.Fatal("Err is nil while nothing can be written")
		}
	}
	if err := os.RemoveAll(block); err != nil {
		t.Fatal(err)
	}
	until(t, "the broker recovers", func() bool { return b.Err() == nil })
	if bad, good := b.log.count("not being saved"), b.log.count("being saved again"); bad != 1 || good != 1 {
		t.Errorf("the log says %d times that it fails and %d times that it recovered", bad, good)
	}
	if raw := must[[]byte](t)(os.ReadFile(filepath.Join(dir, "redis.snapshot"))); !bytes.Contains(raw, []byte("last")) {
		t.Error("the last value is not in the snapshot")
	}
}

// An idle manager writes nothing: not for reads, for polls that find nothing, for heartbeats of
// asynq servers, nor because time to live runs down.
func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir, SnapshotEvery: 5 * time.Millisecond})
	c := b.client(t)
	c.Set(ctx, "k", "v", time.Hour)
	c.SAdd(ctx, "asynq:queues", "q")
	path := filepath.Join(dir, "redis.snapshot")
	until(t, "the content is written", func() bool {
		raw, err := os.ReadFile(path)
		return err == nil && bytes.Contains(raw, []byte("asynq:queues"))
	})
	before := must[os.FileInfo](t)(os.Stat(path))
	for begun := time.Now(); time.Since(begun) < 500*time.Millisecond; {
		c.Get(ctx, "k")
		c.LMove(ctx, "nothing", "nowhere", "RIGHT", "LEFT")
		c.Eval(ctx, `return redis.call("RPOPLPUSH", KEYS[1], KEYS[2])`, []string{"nothing", "nowhere"})
		c.ZAdd(ctx, "asynq:servers", redis.Z{Score: float64(time.Now().UnixNano()), Member: "me"})
		c.Set(ctx, "asynq:servers:{me}", time.Now().String(), time.Second)
		c.Publish(ctx, "c", "m")
	}
	if after := must[os.FileInfo](t)(os.Stat(path)); !os.SameFile(before, after) {
		t.Error("the snapshot was written again")
	}
	c.Set(ctx, "k", "w", 0)
	until(t, "the change is written", func() bool { return !os.SameFile(before, must[os.FileInfo](t)(os.Stat(path))) })
}

// Options.Volatile decides which keys are forgotten.
func TestVolatileKeys(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		volatile []string
		kept     []string
	}{
		"default": {nil, []string{"alive:me", "asynq:queues"}},
		"none":    {[]string{}, []string{"alive:me", "asynq:queues", "asynq:servers:{me}"}},
		"own":     {[]string{"alive:"}, []string{"asynq:queues", "asynq:servers:{me}"}},
	} {
		dir := t.TempDir()
		b := start(t, embedded.Options{Dir: dir, Volatile: c.volatile})
		for _, key := range []string{"asynq:servers:{me}", "asynq:queues", "alive:me"} {
			if err := b.client(t).Set(ctx, key, "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		b.stop(t)
		keys := start(t, embedded.Options{Dir: dir}).client(t).Keys(ctx, "*").Val()
		if slices.Sort(keys); !slices.Equal(keys, c.kept) {
			t.Errorf("%s: kept %v, want %v", name, keys, c.kept)
		}
	}
}
