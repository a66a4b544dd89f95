package child

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// attributes make the kernel kill a child when its worker has gone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// maxSweeps bounds a race with something that starts processes faster than they are found.
const maxSweeps = 8

// sweep kills all processes that bear the mark in their environment.
func sweep(mark string) {
	for range maxSweeps {
		if !sweepOnce([]byte(mark)) {
			return
		}
	}
}

// sweepOnce reports whether it found any that had not ended. Those of other users cannot be read and are none of ours.
func sweepOnce(mark []byte) (found bool) {
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	names, _ := proc.Readdirnames(-1) // what could be read is swept
	_ = proc.Close()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		environment, err := os.ReadFile("/proc/" + name + "/environ") // empty for a process that has ended
		if err != nil || !bytes.Contains(environment, mark) {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			found = true
		}
	}
	return found
}
