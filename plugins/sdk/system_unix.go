//go:build unix

package sdk

import (
	"os"

	"golang.org/x/sys/unix"
)

// splitStdout returns the real standard output under a new number and lets the number 1 lead to standard error. It returns
// nil when the process has no standard output or error; then everything stays as it is.
func splitStdout() *os.File {
	fd, err := unix.FcntlInt(uintptr(unix.Stdout), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil
	}
	if err := unix.Dup2(unix.Stderr, unix.Stdout); err != nil {
		_ = unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), "handshake") //nolint:gosec // a file descriptor
}

// keepFromChildren closes a file descriptor in the programs that this one starts.
func keepFromChildren(fd uint64) { unix.CloseOnExec(int(fd)) } //nolint:gosec // 16 bits
