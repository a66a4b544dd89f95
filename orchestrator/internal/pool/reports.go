package pool

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Finished takes the outcome of a job from its process and gives the process the next.
func (p *Pool) Finished(worker uint64, j *job.Job, o job.Outcome) {
	p.mu.Lock()
	p.load.ran(o.Ended.Sub(o.Started))
	if m := p.member(worker); m != nil {
		delete(m.running, j)
		m.tasks++
		q, _ := p.Settings()
		if reason := p.retire(m, q); reason != "" {
			m.process.Drain(reason)
		}
		if !p.stopping {
			p.dispatch()
		}
		if len(m.running) == 0 {
			m.idleSince = time.Now()
			p.Kick()
		}
	}
	p.mu.Unlock()
	p.Ender.End(j, o)
}

// retire returns why a process should take no more jobs; empty when it may go on.
func (p *Pool) retire(m *member, q settings.Queue) job.ExitReason {
	switch {
	case p.stopping && len(m.running) == 0:
		return job.ExitStop
	case q.WorkerMaxTasks > 0 && m.tasks >= uint64(q.WorkerMaxTasks): //nolint:gosec // not negative
		return job.ExitMaxTasks
	case q.WorkerLifetime > 0 && time.Since(m.process.Since()) >= q.WorkerLifetime:
		return job.ExitLifetime
	default:
		return ""
	}
}

// Progressed passes a running job's progress on.
func (p *Pool) Progressed(j *job.Job, progress task.Progress) { p.Ender.Progress(j, progress) }

// Exited takes the end of a process and ends the jobs that were in it.
func (p *Pool) Exited(exit job.Exit, unfinished []job.Unfinished) {
	p.mu.Lock()
	if p.remove(exit.Worker) == nil && !p.early[exit.Worker] {
		p.early[exit.Worker] = true // it ended before its start was told
	} else {
		delete(p.early, exit.Worker)
	}
	p.mu.Unlock()
	p.Ender.WorkerEnded(p.Queue, exit)
	blame := exit.Reason.Blames()
	for _, u := range unfinished {
		if u.Guilty {
			blame = false // the one to blame is known
		}
	}
	for _, u := range unfinished {
		p.Ender.End(u.Job, outcomeOf(u, exit, blame))
	}
	p.Kick()
}

// outcomeOf says what the end of its process means for a job. Nobody says which of several jobs brought the process down,
// so blameAll charges each.
func outcomeOf(u job.Unfinished, exit job.Exit, blameAll bool) job.Outcome {
	o := job.Outcome{Started: u.Started, Ended: time.Now(), Worker: exit.Worker, End: job.Interrupted}
	ran := o.Ended.Sub(u.Started).Round(time.Millisecond)
	switch {
	case u.Guilty && exit.Reason == job.ExitTaskTimeout:
		o.End = job.Killed
		o.Fault = fault.New(fault.Timeout, "it ran for %s, over task_timeout, ignored the request to end, and its process was killed", ran)
	case u.Guilty && exit.Reason == job.ExitIgnoredCancel:
		o.End = job.Cancelled
		o.Fault = fault.New(fault.Cancelled, "it ignored the request to end, and its process was killed")
	case blameAll && exit.Reason == job.ExitMemoryMax:
		o.End = job.Killed
		o.Fault = fault.New(fault.Memory, "its process grew over memory_max and was killed")
	case blameAll:
		o.End = job.Killed
		o.Fault = fault.New(fault.Crash, "%s, %s into the task", exit, ran)
	default:
		o.Fault = fault.New(fault.Interrupted, "%s", exit)
	}
	if o.End == job.Killed {
		o.Fault.Detail = joined(exit.Tail)
	}
	return o
}
