package worker

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// exitGrace is how long a process may take to be gone after it has closed its stream.
const exitGrace = 2 * time.Second

// leftInTime waits for a process that is leaving and reports whether it did.
func (p *Process) leftInTime() bool {
	timer := time.NewTimer(exitGrace)
	defer timer.Stop()
	select {
	case <-p.s.run.done:
		return true
	case <-timer.C:
		return false
	}
}

// Send gives a job to the process. It never blocks. A job sent to a process that has ended is reported among the
// unfinished if the end is not yet told, and refused (false) afterwards.
func (p *Process) Send(j *job.Job, limits job.Limits) bool {
	now := time.Now()
	deadline := j.Deadline
	if limits.TaskTimeout > 0 {
		if t := now.Add(limits.TaskTimeout); deadline.IsZero() || t.Before(deadline) {
			deadline = t
		}
	}
	message := &workerv1.Task{Id: j.ID.String(), Kind: j.Kind, Payload: j.Payload, Attempt: uint32(j.Attempt())} //nolint:gosec // small
	if !deadline.IsZero() {
		message.DeadlineMs = deadline.UnixMilli()
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return false
	}
	p.lastRun++
	number := p.lastRun
	r := &run{job: j, started: now, limits: limits}
	if !deadline.IsZero() {
		r.timer = time.AfterFunc(time.Until(deadline), func() { p.ask(number, askedByTimeout) })
	}
	p.runs[number] = r
	message.Run = number
	p.push(&workerv1.Instruction{Kind: &workerv1.Instruction_Task{Task: message}})
	p.mu.Unlock()
	p.wake()
	return true
}

// Cancel asks a job's run to end and kills the process when it has not after the grace.
func (p *Process) Cancel(j *job.Job) { p.askFor(j, askedByClient) }

// Interrupt is Cancel for a stop of the manager: the run ends as interrupted.
func (p *Process) Interrupt(j *job.Job) { p.askFor(j, askedByShutdown) }

func (p *Process) askFor(j *job.Job, reason cancelReason) {
	p.mu.Lock()
	var number uint64
	for n, r := range p.runs {
		if r.job == j {
			number = n
		}
	}
	p.mu.Unlock()
	if number != 0 {
		p.ask(number, reason)
	}
}

// ask sends the request to end a run and starts its grace. The first reason counts.
func (p *Process) ask(number uint64, reason cancelReason) {
	p.mu.Lock()
	r := p.runs[number]
	if r == nil || r.asked != notAsked {
		p.mu.Unlock()
		return
	}
	r.asked = reason
	r.stopTimer()
	r.timer = time.AfterFunc(r.limits.KillGrace, func() { p.graceOver(number) })
	p.push(&workerv1.Instruction{Kind: &workerv1.Instruction_Cancel{Cancel: &workerv1.Cancel{Run: number, Reason: string(reason)}}})
	p.mu.Unlock()
	p.wake()
}

// graceOver kills the process of a run that did not end when it was asked to.
func (p *Process) graceOver(number uint64) {
	p.mu.Lock()
	r := p.runs[number]
	p.mu.Unlock()
	if r == nil {
		return
	}
	switch r.asked {
	case askedByTimeout:
		p.killFor(job.ExitTaskTimeout, number)
	case askedByShutdown:
		p.killFor(job.ExitStop, number)
	default:
		p.killFor(job.ExitIgnoredCancel, number)
	}
}

// take handles one report. What names no run of ours is dropped: it may come after a run was given up.
func (p *Process) take(report *workerv1.Report) {
	switch kind := report.GetKind().(type) {
	case *workerv1.Report_Outcome:
		p.ended(kind.Outcome)
	case *workerv1.Report_Progress:
		p.mu.Lock()
		r := p.runs[kind.Progress.GetRun()]
		p.mu.Unlock()
		if r != nil {
			p.sink.Progressed(r.job, *task.ProgressFromProto(kind.Progress.GetProgress()))
		}
	case *workerv1.Report_Log:
		p.logged(kind.Log)
	}
}

// ended takes a run's outcome.
func (p *Process) ended(o *workerv1.Outcome) {
	p.mu.Lock()
	r := p.runs[o.GetRun()]
	delete(p.runs, o.GetRun())
	if r != nil && p.reason == "" && fault.Kind(o.GetFault().GetKind()) == fault.Panic {
		p.reason = job.ExitPanic // the worker leaves once its other runs have ended
	}
	p.mu.Unlock()
	if r == nil {
		return
	}
	r.stopTimer()
	p.sink.Finished(p.id, r.job, r.outcome(o, p.id))
}

// outcome turns what the worker said into what it means, given what the run had been asked.
func (r *run) outcome(o *workerv1.Outcome, worker uint64) job.Outcome {
	out := job.Outcome{Started: r.started, Ended: time.Now(), Worker: worker}
	failure := fault.FromProto(o.GetFault())
	if failure == nil {
		out.End, out.Result = job.Succeeded, o.GetResult()
		return out
	}
	out.Fault = failure
	switch {
	case failure.Kind == fault.Interrupted || r.asked == askedByShutdown:
		out.End = job.Interrupted
	case r.asked == askedByClient:
		out.End = job.Cancelled
	case r.asked == askedByTimeout:
		out.End = job.Killed
		out.Fault = fault.New(fault.Timeout, "it ran longer than %s and ended when asked to: raise task_timeout if it needs more", r.timeout())
	default:
		out.End = job.Faulted
	}
	return out
}

func (r *run) timeout() time.Duration {
	if r.limits.TaskTimeout > 0 {
		return r.limits.TaskTimeout
	}
	return time.Until(r.job.Deadline).Abs().Round(time.Second)
}

func (r *run) stopTimer() {
	if r.timer != nil {
		r.timer.Stop()
	}
}
