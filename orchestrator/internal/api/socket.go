package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// maxPath is the longest path of a Unix socket on all systems, in bytes.
	maxPath = 103
	// probeTimeout bounds the question whether somebody answers on a socket that is there.
	probeTimeout = 2 * time.Second
)

// socket is a Unix socket that listens.
type socket struct {
	path     string
	listener *net.UnixListener
}

// listen opens a socket that only the user of this process may connect to, from its first moment on.
//
// Looking whether an old file is dead, removing it and opening a new one is no single step, so it is done under a lock
// on the folder: of two managers that start at once, one sees the other's socket.
func listen(path string) (*socket, error) {
	if path == "" {
		return nil, errors.New("open the API's socket: its path is empty")
	}
	if len(path) > maxPath {
		return nil, fmt.Errorf("open the API's socket %s: the path has %d bytes; at most %d are possible: use a shorter folder", path, len(path), maxPath)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the API's socket: %w", err)
	}
	lock, err := os.Open(dir) //nolint:gosec // the operator's own configuration
	if err != nil {
		return nil, fmt.Errorf("open the folder of the API's socket: %w", err)
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock the folder of the API's socket %s: %w", dir, err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: private}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the API's socket: %w", err)
	}
	s := &socket{path: path, listener: l.(*net.UnixListener)}
	if err := os.Chmod(path, 0o600); err != nil { // where private does not work
		return nil, errors.Join(fmt.Errorf("restrict the API's socket: %w", err), s.close())
	}
	return s, nil
}

// private gives a socket its mode before it has a name: Linux makes the file with the mode of the descriptor. Setting
// the umask instead would change that of every goroutine. Other systems refuse, and have the mode of the folder.
func private(_, _ string, conn syscall.RawConn) error {
	return conn.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}

// removeStale removes what an earlier manager left at path.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look for the API's socket: %w", err)
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("open the API's socket %s: something that is no socket is there; move it away or configure another path", path)
	}
	dialer := net.Dialer{Timeout: probeTimeout}
	conn, err := dialer.DialContext(context.Background(), "unix", path)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("open the API's socket %s: another manager is running and answers there; stop it or configure another path", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("open the API's socket %s: it cannot be told whether another manager is running there: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the socket that an earlier manager left: %w", err)
	}
	return nil
}

// close closes the socket and removes its file. Closing it again is no error.
func (s *socket) close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the API's socket: %w", err)
	}
	return nil
}
