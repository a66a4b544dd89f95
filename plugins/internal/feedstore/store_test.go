package feedstore_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedstore"
	"github.com/drover-jobs/drover/plugins/internal/feedstore/storetest"
)

// childEnv names the store that this test binary, started as a process of its own, pulls into.
const childEnv = "FEEDSTORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if address := os.Getenv(childEnv); address != "" {
		os.Exit(child(address))
	}
	goleak.VerifyTestMain(m)
}

// child waits for a line on its standard input, saves the same pull a few times, and prints how many entries were new.
func child(address string) int {
	ctx := context.Background()
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // the end of the input is a start as well
	store, err := feedstore.Open(ctx, address, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fresh := 0
	for round := range 5 {
		saved, err := store.Save(ctx, storetest.Pull(round, storetest.Entries(50)), feed.DefaultPolicy())
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fresh += saved.NewEntries
	}
	if err := store.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(fresh)
	return 0
}

func open(t testing.TB, address string) feedstore.Store {
	t.Helper()
	store, err := feedstore.Open(t.Context(), address, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// SQLite keeps every promise of the interface.
func TestSQLite(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	dirs := make(map[string]string)
	storetest.Run(t, func(t testing.TB, place string) feedstore.Store {
		mu.Lock()
		dir, ok := dirs[t.Name()+place]
		if !ok {
			dir = t.TempDir()
			dirs[t.Name()+place] = dir
		}
		mu.Unlock()
		return open(t, "sqlite:"+filepath.Join(dir, "a dir", "feeds?#%.db"))
	})
}

// Ten processes that create the same store and pull the same feed at once make one feed and no duplicate.
func TestProcesses(t *testing.T) {
	t.Parallel()
	address := "sqlite:" + filepath.Join(t.TempDir(), "feeds.db")
	type running struct {
		cmd   *exec.Cmd
		out   *bytes.Buffer
		start func() error
	}
	var all []running
	for range 10 {
		cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this test binary
		cmd.Env = append(os.Environ(), childEnv+"="+address)
		cmd.WaitDelay = time.Second
		out := new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = out, out
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, running{cmd: cmd, out: out, start: in.Close})
	}
	for _, r := range all {
		if err := r.start(); err != nil {
			t.Error(err)
		}
	}
	fresh := 0
	for i, r := range all {
		if err := r.cmd.Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, r.out)
			continue
		}
		var n int
		if _, err := fmt.Sscan(r.out.String(), &n); err != nil {
			t.Errorf("process %d says %q", i, r.out)
		}
		fresh += n
	}
	store := open(t, address)
	f, err := store.Find(t.Context(), storetest.Pull(0, nil).Feed)
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.Entries(t.Context(), f.ID, 1000)
	if err != nil || len(got) != 50 || fresh != 50 || f.ID != 1 {
		t.Errorf("feed %d has %d entries, %d were reported as new, want 50 (%v)", f.ID, len(got), fresh, err)
	}
}

// An address that is no store is refused with the word that is wrong, and a place that cannot be written says where it is.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("not a database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, part := range map[string]string{
		"mysql:x": `unknown scheme "mysql"`, "feeds.db": "no scheme", "sqlite:": "no scheme", "sqlite:" + file: file, "sqlite:" + file + "/x/y.db": "directory",
	} {
		store, err := feedstore.Open(t.Context(), address, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q", address, err, part)
		}
		if store != nil {
			t.Errorf("%s: there is a store", address)
		}
	}
}
