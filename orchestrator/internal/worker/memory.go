package worker

import (
	"syscall"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
)

// RSS returns the resident memory of the process and all its descendants, in bytes; 0 when it cannot be read, as after its
// end. Pages that they share are counted for each.
func (p *Process) RSS() int64 {
	tree := reaper.Tree(p.PID())
	if len(tree) == 0 || !p.s.run.running() {
		return 0
	}
	p.s.run.strays.see(p.s.run.launcher.socketDir, tree)
	total := int64(0)
	for _, member := range append(tree, p.s.run.strays.trees(tree)...) {
		total += member.RSS
	}
	p.sampled(total)
	return total
}

// sampled keeps the latest and the largest size that was seen.
func (p *Process) sampled(size int64) {
	if size <= 0 {
		return
	}
	p.mu.Lock()
	p.lastRSS, p.peakRSS = size, max(p.peakRSS, size)
	p.mu.Unlock()
}

// rssAtEnd is what is known of the memory of a process that has been collected, in bytes: the latest sample, or else the most that
// the process itself ever had. The caller holds mu.
func (p *Process) rssAtEnd() int64 {
	if p.lastRSS > 0 {
		return p.lastRSS
	}
	if usage, ok := p.s.run.state.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss << 10 // getrusage(2) counts in KiB
	}
	return 0
}

// Peak is the most memory, in bytes, that was ever sampled for the process and its descendants.
func (p *Process) Peak() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peakRSS
}
