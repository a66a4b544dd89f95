package worker

import (
	"os"
	"strconv"
	"strings"
)

// maxTree bounds how many processes of one worker are looked at.
const maxTree = 1000

// RSS returns the resident memory of the process and all its descendants, in bytes; 0 when it cannot be read, as after its
// end. Pages that they share are counted for each.
func (p *Process) RSS() int64 {
	total := int64(0)
	tree := []int{p.PID()}
	for n := 0; n < len(tree) && n < maxTree; n++ {
		total += residentOf(tree[n])
		tree = append(tree, childrenOf(tree[n])...)
	}
	return total
}

// residentOf reads the second field of /proc/PID/statm (proc(5)): resident pages.
func residentOf(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// childrenOf reads /proc/PID/task/TID/children (proc(5)) of every thread: a child belongs to the thread that forked it.
func childrenOf(pid int) []int {
	threads := "/proc/" + strconv.Itoa(pid) + "/task/"
	entries, err := os.ReadDir(threads)
	if err != nil {
		return nil
	}
	var children []int
	for _, e := range entries {
		data, err := os.ReadFile(threads + e.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
