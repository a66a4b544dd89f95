package sdk

import (
	"errors"
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
	if fd <= 2 {
		return nil, errors.New("it is one of the standard streams")
	}
	keepFromChildren(fd)
	pipe := os.NewFile(uintptr(fd), "lifeline")
	if pipe == nil {
		return nil, syscall.EBADF
	}
	if _, err := pipe.Stat(); err != nil {
		return nil, err
	}
	return pipe, nil
}
