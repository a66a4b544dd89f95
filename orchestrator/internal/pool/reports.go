package pool

import (
	"slices"
	"strings"
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
	p.circuit.proven()
	p.victims = nil
	if m := p.member(worker); m != nil {
		delete(m.running, j)
		m.finished, m.suspect = true, false
		q, _ := p.Settings()
		if reason := p.retire(m, q); reason != "" {
			m.leave(reason)
		}
		p.dispatch()
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
	p.exits[exit.Reason]++
	p.seat.Give()
	m := p.remove(exit.Worker)
	early := m == nil && p.starting > 0
	switch {
	case early:
		p.early[exit.Worker] = exit // started tells of it, after it has told of the start
	case m != nil:
		m.attest(&exit)
		p.mourn(m, exit, unfinished)
	}
	p.ending++ // a stop waits until they have been told
	p.mu.Unlock()

	if !early {
		p.Ender.WorkerEnded(p.Queue, exit)
	}
	guilty := slices.ContainsFunc(unfinished, func(u job.Unfinished) bool { return u.Guilty })
	blame := exit.Reason.Blames() && !guilty
	for _, u := range slices.Backward(unfinished) { // the oldest last, so that it ends at the head of the queue
		p.Ender.End(u.Job, outcomeOf(u, exit, blame, len(unfinished)))
	}
	p.mu.Lock()
	p.ending--
	p.mu.Unlock()
	p.Kick()
}

// mourn takes note of a member's end. One that ended by itself before it had done anything is a start that failed, unless the
// job that was in it is the one that brought down the process before: then the job may well be at fault. The caller holds mu.
func (p *Pool) mourn(m *member, exit job.Exit, unfinished []job.Unfinished) {
	if m.kill != nil {
		m.kill.Stop()
	}
	switch {
	case exit.Reason != job.ExitCrash && exit.Reason != job.ExitLeft || m.finished || p.stopping:
	case exit.Age >= provenAge && len(unfinished) == 0:
		p.circuit.proven()
	case len(unfinished) == 0 || !p.blamedBefore(unfinished):
		p.failed(didNothing, exit.String()+said(exit.Tail), m.process.Since(), m.made)
	}
}

// blamedBefore reports whether one of the jobs was in the process that crashed last, and remembers these.
func (p *Pool) blamedBefore(unfinished []job.Unfinished) bool {
	before := p.victims
	p.victims = make(map[task.ID]struct{}, len(unfinished))
	known := false
	for _, u := range unfinished {
		_, ok := before[u.Job.ID]
		known = known || ok
		p.victims[u.Job.ID] = struct{}{}
	}
	return known
}

func said(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "; it wrote: " + strings.Join(lines, " | ")
}

// outcomeOf says what the end of its process, with a number of jobs in it, means for one of them. With blame, one of them
// brought it down; when there are several, nobody knows which.
func outcomeOf(u job.Unfinished, exit job.Exit, blame bool, jobs int) job.Outcome {
	o := job.Outcome{Started: u.Started, Ended: time.Now(), Worker: exit.Worker, End: job.Interrupted, Tail: u.Tail, Exit: &exit}
	ran := o.Ended.Sub(u.Started).Round(time.Millisecond)
	switch {
	case u.Cancelled && u.Guilty:
		o.End = job.Cancelled
		o.Fault = fault.New(fault.Cancelled, "it ignored the request to end, and its process was killed")
	case u.Cancelled:
		o.End = job.Cancelled
		o.Fault = fault.New(fault.Cancelled, "its process ended before it had heeded the request to end: %s", exit)
	case u.Expired && u.Guilty:
		o.End = job.Expired
		o.Fault = fault.New(fault.Timeout, "%s; it ignored the request to end for kill_grace (%s), and its process was killed", u.Job.Lapsed(u.Started), u.Limits.KillGrace)
	case u.Expired:
		o.End = job.Expired
		o.Fault = fault.New(fault.Timeout, "%s; its process ended before it had heeded the request to end: %s", u.Job.Lapsed(u.Started), exit)
	case u.Guilty && exit.Reason == job.ExitTaskTimeout:
		than, advice := u.Limits.Overtime(u.Job)
		o.End = job.Killed
		o.Fault = fault.New(fault.Timeout, "it ran for %s, longer than %s, ignored the request to end for kill_grace (%s), and its process was killed: %s", ran, than, u.Limits.KillGrace, advice)
	case blame && exit.Reason == job.ExitMemoryMax:
		o.End = job.Killed
		o.Fault = fault.New(fault.Memory, "%s, %s into the task", exit, ran)
	case blame && exit.Reason == job.ExitTaskTimeout:
		o.End = job.Killed
		o.Fault = fault.New(fault.Timeout, "its process stood still, stopped by a signal, when the time of one of its tasks was over, and was killed: %s", exit)
	case blame:
		o.End = job.Killed
		o.Fault = fault.New(fault.Crash, "%s, %s into the task", exit, ran)
	default:
		o.Fault = fault.New(fault.Interrupted, "%s", exit)
	}
	if o.End == job.Killed {
		o.Fault = o.Fault.WithDetail(strings.Join(u.Tail, "\n"))
		// A job of which nothing was heard in all its time may have met a process that stood still already, or have stopped
		// it in its first moment: it gets another run, which tells.
		unheard := u.Unbegun && exit.Reason == job.ExitTaskTimeout && !u.Job.Suspect
		o.Suspect = blame && jobs > 1 || unheard
	}
	return o
}
