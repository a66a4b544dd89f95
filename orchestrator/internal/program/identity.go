package program

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// identity tells one state of a file from another without reading it. The time of the last change of the inode is in it because a
// copying tool may keep the time of the content.
type identity struct {
	device, inode uint64
	size          int64
	modified      syscall.Timespec
	changed       syscall.Timespec
}

func identityOf(info os.FileInfo) (identity, error) {
	if !info.Mode().IsRegular() {
		return identity{}, fmt.Errorf("it is no file: %s", info.Mode().Type())
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, fmt.Errorf("its identity is not understood: %T", info.Sys())
	}
	return identity{device: stat.Dev, inode: stat.Ino, size: stat.Size, modified: stat.Mtim, changed: stat.Ctim}, nil
}

// look is the identity that the file at a path has now.
func look(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, err
	}
	return identityOf(info)
}

// isNative reports whether a program begins like an ELF file, which needs nothing beside it to be run.
func isNative(head []byte) bool { return bytes.HasPrefix(head, []byte("\x7fELF")) }
