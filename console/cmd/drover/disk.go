package main

import "golang.org/x/sys/unix"

// freeDisk is the room for files beside path, and all the room that there is, in bytes.
func freeDisk(path string) (free, all uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil //nolint:gosec // a block has a size
}
