package worker

import (
	"context"
	"os"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
)

// Orphans. A descendant of a worker whose parent has ended would become a child of the system's first process, and with that be no
// longer in the worker's tree, whose memory is held to a limit and which is killed as a whole. So the manager makes itself their
// parent, finds out whose they are by their environment, and counts them to their worker. One that has cleaned its environment as
// well cannot be held to anything: it is killed.

// adoptEvery is how often the manager looks for orphans.
const adoptEvery = 200 * time.Millisecond

// AdoptOrphans makes this process the parent of its descendants that are orphaned. Call it before Run, and only in a process whose
// children are all either workers of this launcher or run the same program: every other child is taken for an orphan.
func (l *Launcher) AdoptOrphans() {
	if err := reaper.Inherit(); err != nil {
		l.log.Warn("processes that workers start and abandon may outlive them, and are not counted to their memory", "error", err)
		return
	}
	l.adopts = true
}

// child is a child of this process as it was at one look.
type child struct {
	start uint64
	gone  bool
}

// adopt looks for orphans until ctx ends.
func (l *Launcher) adopt(ctx context.Context) {
	ticker := time.NewTicker(adoptEvery)
	defer ticker.Stop()
	before := map[int]child{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if l.forking.TryLock() { // else a child may be one that is just being made
			before = l.lookAtChildren(before)
			l.forking.Unlock()
		}
	}
}

// lookAtChildren gives orphans to their workers, kills those that belong to nobody, and collects those that have ended: both at the
// second look, because the first may come between two steps of somebody else's. It returns what it saw. The caller holds forking.
func (l *Launcher) lookAtChildren(before map[int]child) map[int]child {
	now := map[int]child{}
	for _, pid := range reaper.Children(os.Getpid()) {
		if l.owns(pid) {
			continue
		}
		p, err := reaper.Look(pid)
		if err != nil {
			continue
		}
		saw := child{start: p.Start, gone: p.Gone()}
		again := before[pid] == saw
		now[pid] = saw
		switch owner := l.ownerOf(pid, saw); {
		case saw.gone && again:
			reaper.Collect(pid)
		case saw.gone || owner == nil && reaper.IsProgramOf(pid):
		case owner != nil:
			owner.strays.adopt(l.socketDir, p)
		case again:
			l.log.Warn("a process that a worker started and abandoned is killed: it cleaned its environment, so nobody knows whose it is", "pid", pid)
			for _, member := range reaper.Tree(pid) {
				member.Kill()
			}
		}
	}
	return now
}

// ownerOf returns the process whose directory an orphan's environment names; nil for none that lives.
func (l *Launcher) ownerOf(pid int, saw child) *processRunner {
	if saw.gone {
		return nil
	}
	dir := reaper.WorkerDir(pid)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.live {
		if dir != "" && r.sockets == dir {
			return r
		}
	}
	return nil
}

// owns reports whether a child is a worker.
func (l *Launcher) owns(pid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live[pid] != nil
}

// forked notes a worker that was started, or that none was.
func (l *Launcher) forked(r *processRunner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := r.cmd.Process; p != nil {
		l.live[p.Pid] = r
	}
}

// collected forgets a worker.
func (l *Launcher) collected(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, pid)
}
