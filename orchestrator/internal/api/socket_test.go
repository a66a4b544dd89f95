package api_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// Nobody but the owner may connect, from the first moment at which the sockets are there.
func TestSocketMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// Whoever looks all the time sees no other mode.
	stop, seen := make(chan struct{}), make(chan fs.FileMode, 1)
	go func() {
		defer close(seen)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if info, err := os.Lstat(w.socket); err == nil && info.Mode().Perm() != 0o600 {
				seen <- info.Mode()
				return
			}
		}
	}()
	for range 20 {
		serve(t, w.server(0))()
	}
	close(stop)
	if mode, bad := <-seen; bad {
		t.Errorf("the socket was there with mode %s", mode)
	}
	serve(t, w.server(0))
	for _, path := range []string{w.socket, w.plugin} {
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("%s has mode %v (%v), want a socket with 0600", path, info.Mode(), err)
		}
	}
}

// The socket that a killed manager left is replaced; one on which a manager answers, or another file, is refused.
func TestOldSockets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: w.socket, Net: "unix"})
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	stop := serve(t, w.server(0))
	if err := w.server(0).Listen(); err == nil || !strings.Contains(err.Error(), "another manager is running") || !strings.Contains(err.Error(), w.socket) {
		t.Errorf("a second manager was told %v", err)
	}
	if _, err := os.Lstat(w.socket); err != nil {
		t.Errorf("the refused manager took the socket away: %v", err)
	}
	stop()
	if err := os.WriteFile(w.plugin, []byte("mine"), 0o600); err != nil {
		t.Fatalf("write: %v", err)
	}
	if err := w.server(0).Listen(); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file in the way gave %v", err)
	}
	if content, err := os.ReadFile(w.plugin); err != nil || string(content) != "mine" {
		t.Errorf("the file in the way is now %q, %v", content, err)
	}
	if _, err := os.Lstat(w.socket); !os.IsNotExist(err) {
		t.Errorf("the first socket stayed although the second could not be opened: %v", err)
	}
}

// Of managers that start at once on one dead socket exactly one gets it.
func TestRaceForSocket(t *testing.T) {
	t.Parallel()
	dir := testenv.ShortDir(t)
	for range 20 {
		path := filepath.Join(dir, "s")
		left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatalf("listen: %v", err)
		}
		left.SetUnlinkOnClose(false)
		_ = left.Close()
		var won atomic.Int32
		var wg sync.WaitGroup
		stops := make(chan func(), 8)
		for range 8 {
			wg.Go(func() {
				s := api.New(api.Options{Socket: path, Control: &panel{}, Log: quiet()})
				if s.Listen() == nil {
					won.Add(1)
					stops <- func() { run(t, s) }
				}
			})
		}
		wg.Wait()
		close(stops)
		if won.Load() != 1 {
			t.Errorf("%d managers got the socket", won.Load())
		}
		for stop := range stops {
			stop()
		}
	}
}

// A path that no socket can have is refused with what to do.
func TestLongPath(t *testing.T) {
	t.Parallel()
	s := api.New(api.Options{Socket: "/tmp/" + strings.Repeat("x", 200), Log: quiet()})
	if err := s.Listen(); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("listen gave %v", err)
	}
}
