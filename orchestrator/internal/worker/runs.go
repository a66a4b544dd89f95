package worker

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
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

// Send gives a job to the process. It never blocks. It refuses (false) once the process can no longer be spoken to; a job
// that was sent just before that is reported among the unfinished.
func (p *Process) Send(j *job.Job, limits job.Limits) bool {
	now := time.Now()
	deadline, expires := limits.Ends(j, now)
	message := &workerv1.Task{Id: j.ID.String(), Kind: j.Kind, Payload: j.Payload, Attempt: uint32(j.Attempt())} //nolint:gosec // small
	if !deadline.IsZero() {
		message.DeadlineMs = deadline.UnixMilli()
	}
	from := p.s.run.written()
	p.mu.Lock()
	if p.closed || p.deaf {
		p.mu.Unlock()
		return false
	}
	p.lastRun++
	p.grace = limits.KillGrace
	number := p.lastRun
	r := &run{job: j, started: now, limits: limits, ends: deadline, expires: expires, from: from}
	if !deadline.IsZero() {
		reason := askedByTimeout
		if expires {
			reason = askedByDeadline
		}
		r.timer = time.AfterFunc(time.Until(deadline), func() { p.ask(number, reason) })
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

// InterruptWithin is Interrupt for a run that has lost its lock: its process is killed after grace whatever kill_grace says, also
// when the run had been asked to end before, for another reason.
func (p *Process) InterruptWithin(j *job.Job, grace time.Duration) {
	if number := p.askFor(j, askedForLock); number != 0 {
		time.AfterFunc(grace, func() { p.graceOver(number) })
	}
}

// askFor asks a job's run to end and returns its number; 0 when there is none.
func (p *Process) askFor(j *job.Job, reason cancelReason) (number uint64) {
	p.mu.Lock()
	for n, r := range p.runs {
		if r.job == j {
			number = n
		}
	}
	p.mu.Unlock()
	if number != 0 {
		p.ask(number, reason)
	}
	return number
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
	p.push(&workerv1.Instruction{Kind: &workerv1.Instruction_Cancel{Cancel: &workerv1.Cancel{Run: number, Reason: reason.told()}}})
	p.mu.Unlock()
	p.wake()
}

// told is the reason as the worker gets it.
func (r cancelReason) told() string {
	switch r {
	case askedForLock:
		return string(askedByShutdown)
	case askedByDeadline:
		return string(askedByTimeout)
	default:
		return string(r)
	}
}

// graceOver kills the process of a run that did not end when it was asked to.
func (p *Process) graceOver(number uint64) {
	p.mu.Lock()
	asked := notAsked
	if r := p.runs[number]; r != nil {
		asked = r.asked
	}
	p.mu.Unlock()
	switch asked {
	case notAsked: // it has ended
	case askedByTimeout, askedByDeadline:
		p.killFor(job.ExitTaskTimeout, p.culprit(number))
	case askedByShutdown:
		p.killFor(job.ExitStop, number)
	case askedByClient:
		p.killFor(job.ExitIgnoredCancel, number)
	case askedForLock:
		p.killFor(job.ExitLockLost, number)
	}
}

// culprit returns the run that is to blame for the time-out of a run: itself, as a rule. A process that stands still (SIGSTOP)
// keeps all its runs from ending, and which of them stopped it, if any did, is not known: 0.
func (p *Process) culprit(number uint64) uint64 {
	p.mu.Lock()
	several := len(p.runs) > 1
	p.mu.Unlock()
	if !several {
		return number
	}
	if state, err := reaper.Look(p.PID()); err == nil && state.Stopped() {
		return 0
	}
	return number
}

// take handles one report. What names no run of ours is dropped: it may come after a run was given up.
func (p *Process) take(report *workerv1.Report) {
	switch kind := report.GetKind().(type) {
	case *workerv1.Report_Outcome:
		p.ended(kind.Outcome)
	case *workerv1.Report_Accepted:
		p.mu.Lock()
		if r := p.runs[kind.Accepted.GetRun()]; r != nil {
			r.begun = true
		}
		p.mu.Unlock()
	case *workerv1.Report_Progress:
		p.mu.Lock()
		r := p.runs[kind.Progress.GetRun()]
		p.mu.Unlock()
		if r != nil {
			p.sink.Progressed(r.job, *task.ProgressFromProto(kind.Progress.GetProgress()))
		}
	case *workerv1.Report_Log:
		p.logged(kind.Log)
	case *workerv1.Report_Stacks:
		p.answered(kind.Stacks)
	}
}

// ended takes a run's outcome.
func (p *Process) ended(o *workerv1.Outcome) {
	if o.GetFault() != nil {
		p.s.run.catchUp()
	}
	p.mu.Lock()
	r := p.runs[o.GetRun()]
	if r == nil {
		p.mu.Unlock()
		return
	}
	delete(p.runs, o.GetRun())
	r.stopTimer()
	out := r.outcome(o, p.id)
	if out.Fault != nil {
		out.Tail = p.s.out.since(r.from, diagnosedLines)
	}
	out.Loose = p.reason == job.ExitPanic && out.End == job.Interrupted && r.asked == notAsked
	if p.reason == "" && fault.Kind(o.GetFault().GetKind()) == fault.Panic {
		p.dismiss(job.ExitPanic) // the SDK leaves by itself; others are told
		p.wake()
	}
	p.expectEnd()
	p.mu.Unlock()
	p.sink.Finished(p.id, r.job, out)
}

// clockSlack is how much earlier than here a run's time may be over in the worker, which is told whole milliseconds and ends
// the run by itself.
const clockSlack = 5 * time.Millisecond

// outcome turns what the worker said into what it means, given what the run had been asked.
func (r *run) outcome(o *workerv1.Outcome, worker uint64) job.Outcome {
	out := job.Outcome{Started: r.started, Ended: time.Now(), Worker: worker}
	failure := fault.FromProto(o.GetFault())
	if failure == nil {
		out.End, out.Result = job.Succeeded, o.GetResult()
		return out
	}
	out.Fault = failure
	byItself := r.asked == notAsked && failure.Kind == fault.Timeout && r.overdue(out.Ended)
	switch {
	case r.asked == askedByClient:
		out.End = job.Cancelled
	case r.asked == askedByDeadline, byItself && r.expires:
		out.End, out.Fault = job.Expired, fault.New(fault.Timeout, "%s", r.job.Lapsed(r.started))
	case r.asked == askedByTimeout, byItself:
		out.End, out.Fault = job.Killed, r.overtime(failure)
	case r.asked == askedForLock:
		out.End, out.Fault = job.Interrupted, fault.New(fault.Interrupted, "it lost its lock and ended when asked to")
	case r.asked == askedByShutdown || failure.Kind == fault.Interrupted:
		out.End = job.Interrupted
	default:
		out.End = job.Faulted
	}
	return out
}

// overtime is the fault of a run that its worker ended in time when its time was over. How the worker did that only the worker
// knows: the handler may have heeded the cancel, or the worker may have killed a program that did not (plugins/exec). So the
// worker's own words stand behind what is known here.
func (r *run) overtime(said *fault.Fault) *fault.Fault {
	than, advice := r.limits.Overtime(r.job)
	f := fault.New(fault.Timeout, "it ran longer than %s, and its worker ended it within kill_grace (%s): %s", than, r.limits.KillGrace, advice)
	if said.Message != "" {
		f.Message += "; the worker says: " + said.Message
	}
	return f.WithDetail(said.Detail)
}

// overdue reports whether the run's time was over, by the clock of the worker.
func (r *run) overdue(now time.Time) bool {
	return !r.ends.IsZero() && !now.Add(clockSlack).Before(r.ends)
}

func (r *run) stopTimer() {
	if r.timer != nil {
		r.timer.Stop()
	}
}
