package lock_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/lock"
)

const (
	contenders = 4 // goroutines of each process
	additions  = 15
)

// contend adds to the number in a file, under a lock and without any other care. Its arguments are the kind of store, its
// address and the file.
func contend(args []string) int {
	bare, closeStore := open(args[0], args[1])
	defer func() { _ = closeStore() }()
	store := patient{bare}
	k, err := lock.NewKey("pull", []string{"url"}, []byte(`{"url":"one"}`))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var all sync.WaitGroup
	failed := make(chan error, contenders)
	for range contenders {
		all.Go(func() {
			for range additions {
				if err := addLocked(ctx, store, k, args[2]); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func addLocked(ctx context.Context, store lock.Store, k lock.Key, file string) error {
	token := lock.NewToken()
	ticker := time.NewTicker(3 * time.Millisecond)
	defer ticker.Stop()
	for {
		held, _, err := store.Acquire(ctx, k, token, long, lock.Holder{})
		if err != nil {
			return err
		}
		if held {
			break
		}
		<-ticker.C
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	return store.Release(ctx, k, token)
}

// Two processes that contend for one lock lose none of each other's work.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, r *rig) {
		file := filepath.Join(t.TempDir(), "number")
		if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				cmd := exec.Command(os.Args[0], r.kind, r.server.Addr(), file)
				cmd.Env = append(os.Environ(), roleVariable+"=contender")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("contender: %v\n%s", err, out)
				}
			})
		}
		both.Wait()
		text, err := os.ReadFile(file)
		if want := strconv.Itoa(2 * contenders * additions); err != nil || string(text) != want {
			t.Errorf("the number is %q, %v; want %s", text, err, want)
		}
	})
}
