package sdk

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// openLifeline takes over the file descriptor and keeps it from the worker's own children.
func openLifeline(number string) (*os.File, error) {
	fd, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return nil, err
	}
	if fd <= uint64(syscall.Stderr) { //nolint:gosec // a small constant
		return nil, fmt.Errorf("it is one of the standard streams")
	}
	syscall.CloseOnExec(int(fd)) //nolint:gosec // 16 bits
	pipe := os.NewFile(uintptr(fd), "lifeline")
	if pipe == nil {
		return nil, syscall.EBADF
	}
	if _, err := pipe.Stat(); err != nil {
		return nil, err
	}
	return pipe, nil
}
