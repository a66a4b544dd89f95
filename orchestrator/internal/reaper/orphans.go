package reaper

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Inherit makes this process the parent of every descendant whose own parent ends (PR_SET_CHILD_SUBREAPER, prctl(2)), so that none
// of them leaves its tree. They have to be collected with Collect.
func Inherit() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// Children returns the numbers of a process's children.
func Children(pid int) []int { return children(pid) }

// Collect collects a child that has ended, so that its number is free; it does nothing to one that has not.
func Collect(pid int) {
	var status unix.WaitStatus
	_, _ = unix.Wait4(pid, &status, unix.WNOHANG, nil) // an error says that it was no child, or is collected
}

// WorkerDir returns the directory of the worker that a process's environment names; empty for none, or when it may not be read.
func WorkerDir(pid int) string {
	dir := ""
	socketDirOf(pid, func(value string) bool {
		dir = value
		return true
	})
	return dir
}

// IsProgramOf reports whether a process runs the program of this one: it is the manager's reaper, or was forked a moment ago.
func IsProgramOf(pid int) bool {
	mine, err := os.Stat("/proc/self/exe")
	if err != nil {
		return true // nothing is known of anybody
	}
	its, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil && os.SameFile(mine, its)
}
