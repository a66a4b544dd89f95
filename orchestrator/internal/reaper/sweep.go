package reaper

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

// Variable is the name of the variable of a worker's environment that holds its own directory, below its manager's. go-plugin's says the
// same, but workers keep what begins with PLUGIN_ from the programs that they start.
const (
	Variable       = "DROVER_WORKER_DIR"
	pluginVariable = "PLUGIN_UNIX_SOCKET_DIR"
)

// How often a sweep looks again, at most how long, and how long it waits in between, which doubles: a killed process takes a moment to
// go, a large one a long moment, and one that was forking when it was killed has left a child. A look reads all of /proc.
const (
	sweepFor          = 5 * time.Second
	sweepPause        = 2 * time.Millisecond
	longestSweepPause = 32 * time.Millisecond
)

// Sweep kills every process that belongs to the workers of the manager with this directory, until none is found or five seconds are
// over. It returns how many it killed and whether none was left.
func Sweep(dir string) (killed int, clean bool) {
	below := strings.TrimSuffix(dir, "/") + "/"
	return sweep(func() []Process {
		return members(func(value string) bool { return strings.HasPrefix(value, below) }, notes(dir))
	})
}

// SweepWorker kills what is left of one worker: every process whose environment names the worker's own directory, and the groups
// that the strays led.
func SweepWorker(sockets string, strays []Process) (killed int, clean bool) {
	noted := make([]note, 0, len(strays))
	for _, p := range strays {
		noted = append(noted, note{group: p.PID, start: p.Start, session: p.Session})
	}
	return sweep(func() []Process {
		return members(func(value string) bool { return sockets != "" && value == sockets }, noted)
	})
}

// sweep kills what find finds until that is nothing.
func sweep(find func() []Process) (killed int, clean bool) {
	counted := map[Process]bool{}
	pause := sweepPause
	for late := time.Now().Add(sweepFor); ; {
		found := find()
		if len(found) == 0 {
			return len(counted), true
		}
		for _, p := range found {
			p.Kill()
			counted[Process{PID: p.PID, Start: p.Start}] = true
		}
		if time.Now().After(late) {
			return len(counted), false
		}
		<-time.After(pause)
		pause = min(2*pause, longestSweepPause)
	}
}

// members returns the living processes that a value of the variable or a note gives away.
func members(isOurs func(value string) bool, noted []note) []Process {
	self := os.Getpid()
	type leader struct {
		process Process
		err     error
	}
	leaders := make(map[int]leader, len(noted))
	for _, n := range noted {
		p, err := Look(n.group)
		leaders[n.group] = leader{p, err}
	}
	var found []Process
	for _, pid := range all() {
		if pid == self || pid == 1 {
			continue
		}
		ours := socketDirOf(pid, isOurs)
		if !ours && len(noted) == 0 {
			continue
		}
		p, err := Look(pid)
		if err != nil || p.Gone() {
			continue
		}
		for _, n := range noted {
			ours = ours || n.covers(p, leaders[n.group].process, leaders[n.group].err)
		}
		if ours {
			found = append(found, p)
		}
	}
	return found
}

// socketDirOf reports whether the environment that a process was started with has a directory of ours. Another user's
// environment cannot be read, and is none of ours: a manager that starts workers for others is root.
func socketDirOf(pid int, isOurs func(value string) bool) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return hasVariable(environ, Variable, isOurs) || hasVariable(environ, pluginVariable, isOurs)
}

// hasVariable reports whether an environment, as the kernel shows it, has the variable with a value of ours.
func hasVariable(environ []byte, name string, isOurs func(value string) bool) bool {
	prefix := []byte(name + "=")
	for len(environ) > 0 {
		at := bytes.Index(environ, prefix)
		if at < 0 {
			return false
		}
		whole := at == 0 || environ[at-1] == 0
		environ = environ[at+len(prefix):]
		value, _, _ := bytes.Cut(environ, []byte{0})
		if whole && isOurs(string(value)) {
			return true
		}
	}
	return false
}
