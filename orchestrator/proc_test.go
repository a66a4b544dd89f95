package orchestrator_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// childrenOf returns the process numbers of a process's children that run a program of this name.
func childrenOf(t *testing.T, parent int, program string) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, path := range stats {
		data, err := os.ReadFile(path) //nolint:gosec // /proc
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid ...
		open, end := strings.IndexByte(string(data), '('), strings.LastIndexByte(string(data), ')')
		fields := strings.Fields(string(data[end+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) || fields[0] == "Z" || string(data[open+1:end]) != program {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(data[:open])))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
