package actor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Found is a process that was found in /proc.
type Found struct {
	PID     int
	Parent  int
	Command string
}

// Having returns the living processes whose environment has the text. Children inherit it, whatever session they are in.
func Having(text string) []Found {
	return find(func(dir string) bool {
		environ, err := os.ReadFile(filepath.Join(dir, "environ")) //nolint:gosec // /proc
		return err == nil && bytes.Contains(environ, []byte(text))
	})
}

// Running returns the living processes of a program.
func Running(program string) []Found {
	return find(func(dir string) bool {
		exe, err := os.Readlink(filepath.Join(dir, "exe"))
		return err == nil && strings.TrimSuffix(exe, " (deleted)") == program
	})
}

func find(fits func(dir string) bool) []Found {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var found []Found
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || !fits(dir) {
			continue
		}
		if f, lives := look(dir, pid); lives {
			found = append(found, f)
		}
	}
	return found
}

// look reads what a process is; one that has ended and waits to be collected does not live.
func look(dir string, pid int) (Found, bool) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat")) //nolint:gosec // /proc
	if err != nil {
		return Found{}, false
	}
	// pid (name) state ppid ...
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return Found{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return Found{}, false
	}
	command, _ := os.ReadFile(filepath.Join(dir, "cmdline")) //nolint:gosec // /proc
	return Found{PID: pid, Parent: parent, Command: strings.TrimSpace(string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))}, true
}
