package reaper

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is a process as it was when it was looked at. Number and start time together name it for ever.
type Process struct {
	PID, Parent, Group, Session int
	Start                       uint64 // clock ticks after the boot
	State                       byte   // the letter of proc(5): R, S, D, T, Z ...
	RSS                         int64  // resident memory in bytes
}

// Gone reports whether nothing of the process runs any more: it waits to be collected.
func (p Process) Gone() bool { return p.State == 'Z' || p.State == 'X' }

// Stopped reports whether the process stands still, by SIGSTOP or under a debugger.
func (p Process) Stopped() bool { return p.State == 'T' || p.State == 't' }

// errStat says that the kernel's description of a process was not understood.
var errStat = errors.New("the description of a process in /proc is not understood")

// Look reads what the kernel says of a process.
func Look(pid int) (Process, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, err
	}
	return parseStat(pid, data)
}

// parseStat reads /proc/PID/stat (proc(5)). The second field is the program's name in parentheses and may hold anything.
func parseStat(pid int, data []byte) (Process, error) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return Process{}, errStat
	}
	fields := strings.Fields(string(data[end+1:])) // the first of them is field 3
	const first = 3
	if len(fields) <= 24-first {
		return Process{}, errStat
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(fields[field-first], 10, 64) // the kernel writes numbers
		return n
	}
	return Process{
		PID: pid, State: fields[0][0], Parent: int(number(4)), Group: int(number(5)), Session: int(number(6)),
		Start: uint64(number(22)), RSS: number(24) * int64(os.Getpagesize()), //nolint:gosec // not negative
	}, nil
}

// all returns the numbers of all processes.
func all() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }()
	names, _ := proc.Readdirnames(-1) // what could be read is better than nothing
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// maxTree bounds how many processes of one worker are looked at.
const maxTree = 1000

// Tree returns a process and its descendants, parents first; nothing when it is not there.
func Tree(pid int) []Process {
	root, err := Look(pid)
	if err != nil {
		return nil
	}
	tree := []Process{root}
	for n := 0; n < len(tree) && len(tree) < maxTree; n++ {
		for _, child := range children(tree[n].PID) {
			if p, err := Look(child); err == nil {
				tree = append(tree, p)
			}
		}
	}
	return tree
}

// children reads /proc/PID/task/TID/children (proc(5)) of every thread: a child belongs to the thread that forked it.
func children(pid int) []int {
	threads := "/proc/" + strconv.Itoa(pid) + "/task/"
	dir, err := os.Open(threads) //nolint:gosec // of /proc
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	var found []int
	for _, name := range names {
		data, err := os.ReadFile(threads + name + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// Kill sends SIGKILL to the process, unless its number is another's by now.
func (p Process) Kill() {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or forbidden by a sandbox
		if now, err := Look(p.PID); err == nil && now.Start == p.Start {
			_ = unix.Kill(p.PID, unix.SIGKILL)
		}
		return
	}
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	// The descriptor holds whatever has the number now; only then is it worth asking who that is.
	if now, err := Look(p.PID); err == nil && now.Start == p.Start {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // an error says that it is gone
	}
}
