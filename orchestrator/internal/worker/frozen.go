package worker

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
)

// lookEvery is how often a process is looked at for whether it stands still, how large it is, and what has left its group.
const lookEvery = time.Second

// Stopped reports whether the process stands still now, by SIGSTOP or under a debugger. It is not killed for that: its jobs' time goes
// on, and without task_timeout an operator may take all the time in the world.
func (p *Process) Stopped() bool {
	seen, err := reaper.Look(p.PID())
	return err == nil && p.s.run.running() && seen.Stopped()
}

// follow looks at the process now and then, and warns when it stands still with jobs in it. Once it has been collected, follow ends its stream, should anybody still
// hold the other end of it.
func (p *Process) follow() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	warned := false
	for alive := true; alive; {
		select {
		case <-p.s.run.done:
			alive = false
		case <-ticker.C:
			_ = p.RSS() // for what it remembers: nobody may have asked since
			warned = p.warnIfFrozen(warned)
		}
	}
	timer := time.NewTimer(pipeGrace)
	defer timer.Stop()
	select {
	case <-timer.C:
		p.cancel()
	case <-p.done:
	}
}

// warnIfFrozen warns once for each time that the process is stopped with jobs in it, and returns whether it has.
func (p *Process) warnIfFrozen(warned bool) bool {
	stopped := p.Stopped()
	p.mu.Lock()
	jobs := len(p.runs)
	p.mu.Unlock()
	switch {
	case stopped && !warned && jobs > 0:
		p.log.Warn("a worker has been stopped with tasks in it (SIGSTOP, or a debugger); kill -CONT lets it go on, and task_timeout, if it is set, ends it",
			"worker", p.id, "pid", p.PID(), "tasks", jobs)
		return true
	case !stopped && warned:
		p.log.Info("a stopped worker goes on", "worker", p.id, "pid", p.PID())
		return false
	}
	return warned
}
