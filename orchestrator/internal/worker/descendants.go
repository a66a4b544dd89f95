package worker

import (
	"sync"
	"syscall"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
)

// What a process starts and what does not stay in its group.

// strays are the descendants of a process that were seen to lead a group of their own, and those that were orphaned: once their parents
// are gone, nothing else tells whose they are.
type strays struct {
	mu    sync.Mutex
	known map[int]reaper.Process // by process number
}

// see remembers the strays of a tree, and notes them for the manager's reaper.
func (s *strays) see(dir string, tree []reaper.Process) {
	for _, p := range s.remember(dir, tree) {
		_ = reaper.Note(dir, p) // without the note, the environment still tells, as a rule
	}
}

// remember remembers the strays of a tree and returns those that are new.
func (s *strays) remember(dir string, tree []reaper.Process) (found []reaper.Process) {
	if len(tree) == 0 {
		return nil
	}
	for _, p := range tree[1:] {
		if p.Group == p.PID && s.add(dir, p) {
			found = append(found, p)
		}
	}
	return found
}

// adopt remembers a descendant that was orphaned.
func (s *strays) adopt(dir string, p reaper.Process) {
	if s.add(dir, p) && p.Group == p.PID {
		_ = reaper.Note(dir, p) // as in see
	}
}

// add remembers a process, and reports whether it was not known. Too many make it forget those that have ended.
func (s *strays) add(dir string, p reaper.Process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[p.PID].Start == p.Start {
		return false
	}
	if s.known == nil {
		s.known = map[int]reaper.Process{}
	}
	if len(s.known) >= maxStrays {
		s.forgetGone(dir)
	}
	s.known[p.PID] = p
	return true
}

// trees returns what lives of the strays and their descendants, without those of another tree.
func (s *strays) trees(without []reaper.Process) []reaper.Process {
	seen := make(map[int]bool, len(without))
	for _, p := range without {
		seen[p.PID] = true
	}
	var found []reaper.Process
	for _, stray := range s.all() {
		if seen[stray.PID] {
			continue
		}
		tree := reaper.Tree(stray.PID)
		if len(tree) == 0 || tree[0].Start != stray.Start {
			continue
		}
		for _, p := range tree {
			if !seen[p.PID] {
				seen[p.PID] = true
				found = append(found, p)
			}
		}
	}
	return found
}

// maxStrays is how many strays are remembered before those that have ended are forgotten.
const maxStrays = 64

// forgetGone forgets the strays that have ended. The caller holds mu.
func (s *strays) forgetGone(dir string) {
	for pid, p := range s.known {
		if now, err := reaper.Look(pid); err != nil || now.Start != p.Start {
			delete(s.known, pid)
			reaper.Forget(dir, pid)
		}
	}
}

// all returns them and forgets none.
func (s *strays) all() []reaper.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make([]reaper.Process, 0, len(s.known))
	for _, p := range s.known {
		found = append(found, p)
	}
	return found
}

// note writes down whose group it is. The process has just been forked.
func (r *processRunner) note(pid int) {
	leader, err := reaper.Look(pid)
	if err == nil {
		err = reaper.Note(r.launcher.socketDir, leader)
	}
	if err != nil {
		r.launcher.log.Warn("should the manager be killed, children of this worker may remain", "pid", pid, "error", err)
	}
}

// killTree kills the group, and the descendants outside of it, who are found only as long as their parents live. It notes nothing: a
// file would be written first, and a busy disk must not delay a kill. The caller holds killing.
func (r *processRunner) killTree() {
	tree := reaper.Tree(r.pid)
	r.strays.remember(r.launcher.socketDir, tree)
	_ = syscall.Kill(-r.pid, syscall.SIGKILL)
	for _, p := range append(tree, r.strays.trees(tree)...) {
		if p.Group != r.pid {
			p.Kill()
		}
	}
}

// sweep kills what the process has left, wherever it went, and forgets it. The launcher's end waits for it.
func (r *processRunner) sweep() {
	defer r.launcher.processes.Done()
	left := r.strays.all()
	killed, clean := reaper.SweepWorker(r.sockets, left)
	for _, p := range left {
		reaper.Forget(r.launcher.socketDir, p.PID)
	}
	reaper.Forget(r.launcher.socketDir, r.cmd.Process.Pid)
	<-r.discarded
	switch pid := r.cmd.Process.Pid; {
	case !clean:
		r.launcher.unclean.Store(true)
		r.launcher.log.Warn("processes that a worker left do not die", "worker_pid", pid, "directory", r.sockets)
	case killed > 0:
		r.launcher.log.Debug("killed what a worker left", "worker_pid", pid, "processes", killed)
	}
}
