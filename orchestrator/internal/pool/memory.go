package pool

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// sampleEvery is how often the memory of the processes is measured.
const sampleEvery = 200 * time.Millisecond

// watchMemory holds the processes to memory_max and memory_soft until ctx ends.
func (p *Pool) watchMemory(ctx context.Context) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.checkMemory()
		}
	}
}

// checkMemory kills the processes that are over memory_max and lets those over memory_soft go after their jobs.
func (p *Pool) checkMemory() {
	q, _ := p.Settings()
	if q.MemoryMax <= 0 && q.MemorySoft <= 0 {
		return
	}
	p.mu.Lock()
	members := append([]*member(nil), p.members...)
	p.mu.Unlock()
	for _, m := range members {
		size := settings.Bytes(m.process.RSS()) // reads files, so without the lock
		switch {
		case q.MemoryMax > 0 && size >= q.MemoryMax:
			p.note(m, fmt.Sprintf("%s of memory, memory_max is %s", inMiB(size), q.MemoryMax))
			m.process.Kill(job.ExitMemoryMax)
		case q.MemorySoft > 0 && size >= q.MemorySoft && !m.process.Leaving():
			p.note(m, fmt.Sprintf("%s of memory, memory_soft is %s", inMiB(size), q.MemorySoft))
			m.process.Drain(job.ExitMemorySoft)
			p.Kick()
		}
	}
}

func (p *Pool) note(m *member, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.note == "" || !m.process.Leaving() {
		m.note = text
	}
}

func inMiB(b settings.Bytes) string { return fmt.Sprintf("%.1f MiB", float64(b)/float64(settings.MiB)) }
