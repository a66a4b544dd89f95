package cache_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/discovery/internal/cache"
	"github.com/drover-jobs/drover/protocol/testenv"
)

func open(t *testing.T, address string) cache.Cache {
	t.Helper()
	c, err := cache.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// places gives every kind of cache a place of its own.
func places(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{"files": "dir:" + filepath.Join(t.TempDir(), "a", "b"), "memcached": "memcached:" + testenv.StartMemcached(t).Addr()}
}

// What one process has put another one gets, until it expires; another key has nothing.
func TestShared(t *testing.T) {
	t.Parallel()
	for name, address := range places(t) {
		a, b := open(t, address), open(t, address)
		if _, ok, err := a.Get(t.Context(), "x"); ok || err != nil {
			t.Errorf("%s: empty: %v, %v", name, ok, err)
		}
		for _, value := range []string{"one", "", strings.Repeat("long", 100_000)} {
			if err := a.Put(t.Context(), "https://example.com/?a b\n", []byte(value), time.Minute); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, ok, err := b.Get(t.Context(), "https://example.com/?a b\n"); !ok || err != nil || string(got) != value {
				t.Errorf("%s: got %.20q, %v, %v", name, got, ok, err)
			}
		}
		if _, ok, err := b.Get(t.Context(), "https://example.com/?a b"); ok || err != nil {
			t.Errorf("%s: another key: %v, %v", name, ok, err)
		}
		if err := a.Put(t.Context(), "x", make([]byte, 2<<20), time.Minute); err == nil {
			t.Errorf("%s took too large a value", name)
		}
	}
}

// What has expired is not given out, and its file goes when somebody writes.
func TestExpiry(t *testing.T) {
	t.Parallel()
	for name, address := range places(t) {
		c := open(t, address)
		if err := c.Put(t.Context(), "short", []byte("x"), time.Second); err != nil {
			t.Fatal(err)
		}
		late := time.Now().Add(10 * time.Second)
		for {
			_, ok, err := c.Get(t.Context(), "short")
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("%s never forgets", name)
			}
		}
		dir, isDir := strings.CutPrefix(address, "dir:")
		if !isDir {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "README"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(t, address).Put(t.Context(), "new", []byte("x"), time.Minute); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
			t.Errorf("left are %v, %v; want the new one and the stranger", left, err)
		}
	}
}

// Many writers and readers of one key never see half a value.
func TestWholeValues(t *testing.T) {
	t.Parallel()
	for name, address := range places(t) {
		var wg sync.WaitGroup
		for i := range 4 {
			c := open(t, address)
			wg.Go(func() {
				value := bytes.Repeat(fmt.Appendf(nil, "%d", i), 20_000)
				for range 50 {
					if err := c.Put(t.Context(), "k", value, time.Minute); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					got, ok, err := c.Get(t.Context(), "k")
					if err != nil || !ok || len(got) != len(value) || bytes.Count(got, got[:1]) != len(got) {
						t.Errorf("%s: got %d bytes, %v, %v", name, len(got), ok, err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// A cache that does not work says so at once and is a cache that has nothing; a damaged file is nothing, too.
func TestBroken(t *testing.T) {
	t.Parallel()
	server := testenv.StartMemcached(t)
	c := open(t, "memcached:"+server.Addr())
	server.Freeze()
	begun := time.Now()
	if _, ok, err := c.Get(t.Context(), "x"); ok || err == nil {
		t.Errorf("frozen: %v, %v", ok, err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("a frozen memcached holds a task up for %v", took)
	}
	server.Kill()
	if err := c.Put(t.Context(), "x", nil, time.Minute); err == nil {
		t.Error("a dead memcached took a value")
	}
	dir := t.TempDir()
	f := open(t, "dir:"+dir)
	if err := f.Put(t.Context(), "x", []byte("value"), time.Minute); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	for _, content := range []string{"", "short", strings.Repeat("\xff", 100)} {
		if err := os.WriteFile(names[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := f.Get(t.Context(), "x"); ok || err != nil {
			t.Errorf("%q: %q, %v, %v", content, got, ok, err)
		}
	}
	off := open(t, "off")
	if err := off.Put(t.Context(), "x", nil, time.Minute); err != nil {
		t.Error(err)
	}
	if _, ok, err := off.Get(t.Context(), "x"); ok || err != nil {
		t.Errorf("off: %v, %v", ok, err)
	}
}

// An address that is not understood is told with what is allowed.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "redis:x", "memcached", "memcached:", "memcached:host", "dir:", "dir:/dev/null/x"} {
		if c, err := cache.Open(address); err == nil {
			t.Errorf("%q: got %v", address, c)
		}
	}
}
