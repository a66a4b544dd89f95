package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processorTime is how long a process was at work since its start: utime and stime, fields 14 and 15 of proc(5), in hundredths
// of a second.
func processorTime(pid int) (time.Duration, error) {
	fields, err := statOf(pid)
	if err != nil {
		return 0, err
	}
	const user, system, tick = 11, 12, 10 * time.Millisecond
	total := 0
	for _, field := range []int{user, system} {
		n, err := strconv.Atoi(fields[field])
		if err != nil {
			return 0, err
		}
		total += n
	}
	return time.Duration(total) * tick, nil
}

// statOf are the fields of a process from its state on.
func statOf(pid int) ([]string, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil, fmt.Errorf("how long a process was at work is known on Linux only: %w", err)
	}
	return strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:])), nil
}

// childrenOf are the processes that a process has started and that live.
func childrenOf(parent int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var children []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		fields, err := statOf(pid)
		if err == nil && fields[1] == strconv.Itoa(parent) {
			children = append(children, pid)
		}
	}
	return children, nil
}

// loadOfMachine is the load average of the last minute, for people.
func loadOfMachine() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}
