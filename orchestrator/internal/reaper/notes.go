package reaper

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// notePrefix begins the names of notes in a manager's directory; the number of the group follows.
const notePrefix = "group-"

// A note names a process group by its leader: the number alone may be given away again once the group is gone.
type note struct {
	group   int
	start   uint64 // of the leader
	session int
	boot    string // start times count from it
}

// Note writes down in a manager's directory that the group which the process leads is a worker's.
func Note(dir string, leader Process) error {
	text := fmt.Sprintf("%d %d %s\n", leader.Start, leader.Session, boot())
	if err := os.WriteFile(notePath(dir, leader.PID), []byte(text), 0o600); err != nil {
		return fmt.Errorf("note the process group of a worker: %w", err)
	}
	return nil
}

// Forget removes the note of a group.
func Forget(dir string, group int) {
	_ = os.Remove(notePath(dir, group)) // a note too many does no harm
}

func notePath(dir string, group int) string {
	return filepath.Join(dir, notePrefix+strconv.Itoa(group))
}

// notes reads the notes of a directory that were written since the boot. One that is not whole is of a manager that was killed as
// it wrote it.
func notes(dir string) []note {
	paths, _ := filepath.Glob(filepath.Join(escape(dir), notePrefix+"*")) // the pattern is sound
	now := boot()
	var found []note
	for _, path := range paths {
		group, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), notePrefix))
		if err != nil {
			continue
		}
		data, err := os.ReadFile(path) //nolint:gosec // a directory of our own
		if err != nil {
			continue
		}
		n := note{group: group}
		if _, err := fmt.Fscan(bytes.NewReader(data), &n.start, &n.session, &n.boot); err == nil && n.boot == now && group > 1 {
			found = append(found, n)
		}
	}
	return found
}

// escape makes a path fit for a pattern.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// covers reports whether a process is of the noted group. While the leader is there, it must be the noted one. Without a leader
// the number cannot have been given to another process as long as the group has members; should the whole group have gone
// and the number have come back, then most likely in another session.
func (n note) covers(p Process, leader Process, leaderErr error) bool {
	if p.Group != n.group || p.Start < n.start {
		return false
	}
	if leaderErr == nil {
		return leader.Start == n.start
	}
	return p.Session == n.session
}

// boot names the boot of the machine; empty when the kernel does not tell.
func boot() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(data))
}
