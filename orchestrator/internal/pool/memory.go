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
	q, manager := p.Settings()
	if q.MemoryMax <= 0 && q.MemorySoft <= 0 && manager.MaxMemory <= 0 {
		return
	}
	p.mu.Lock()
	members := append([]*member(nil), p.members...)
	p.mu.Unlock()
	known, sum := 0, settings.Bytes(0)
	defer func() { p.seat.Weigh(known, sum) }()
	for _, m := range members {
		size := settings.Bytes(m.process.RSS()) // reads files, so without the lock
		if size > 0 {
			known, sum = known+1, sum+size
		}
		switch {
		case q.MemoryMax > 0 && size >= q.MemoryMax:
			p.overran(m, overrun{reason: job.ExitMemoryMax, limit: q.MemoryMax, size: size})
			m.process.Kill(job.ExitMemoryMax)
		case q.MemorySoft > 0 && size >= q.MemorySoft && !m.process.Leaving():
			p.overran(m, overrun{reason: job.ExitMemorySoft, limit: q.MemorySoft, size: size})
			p.Kick()
		default:
			p.weighed(m, size)
		}
	}
}

// overrun is a limit of memory that a process was over; the zero value is none.
type overrun struct {
	reason      job.ExitReason
	limit, size settings.Bytes
}

func (o overrun) String() string {
	name := "memory_max"
	if o.reason == job.ExitMemorySoft {
		name = "memory_soft"
	}
	return fmt.Sprintf("%s of memory, %s is %s", inMiB(o.size), name, o.limit)
}

func (p *Pool) weighed(m *member, size settings.Bytes) {
	if size == 0 {
		return // it has ended; what it had is more to the point
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m.rss = int64(size)
}

// overran takes note of a limit that a process is over. What it is killed for counts more than what it was asked to leave for.
func (p *Pool) overran(m *member, o overrun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.rss = int64(o.size)
	if m.over.reason == "" || o.reason == job.ExitMemoryMax && m.over.reason != o.reason {
		m.over = o
	}
	if o.reason == job.ExitMemorySoft {
		m.leave(o.reason)
	}
}

// attest completes the end of a process with what is known of its memory. The caller holds mu.
func (m *member) attest(exit *job.Exit) {
	if exit.RSS == 0 {
		exit.RSS = m.rss
	}
	if m.over.reason == exit.Reason {
		exit.RSS, exit.Limit, exit.Note = int64(m.over.size), int64(m.over.limit), m.over.String()
	}
}

func inMiB(b settings.Bytes) string { return fmt.Sprintf("%.1f MiB", float64(b)/float64(settings.MiB)) }
