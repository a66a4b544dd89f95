package pool

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// stopGrace is how long processes get to end by themselves once they were told to for a stop, before they are killed.
const stopGrace = time.Second

// Run keeps the number of processes right until ctx ends, and then empties the pool.
func (p *Pool) Run(ctx context.Context) error {
	starting, cancelStarts := context.WithCancel(ctx)
	defer cancelStarts()
	watching, stopWatching := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { p.watchMemory(watching) }) // to the end: a task may grow while the pool waits for it
	defer watch.Wait()
	defer stopWatching()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-p.kick:
		case <-timer.C:
		}
		if ctx.Err() == nil {
			timer.Reset(p.adjust(starting))
		}
	}
	cancelStarts()
	p.stop()
	p.starts.Wait()
	return nil
}

// adjust starts and ends processes as the load asks for, and returns how long until it must look again.
func (p *Pool) adjust(ctx context.Context) time.Duration {
	p.mu.Lock()
	p.dispatch()
	var returned []*job.Job
	if p.paused() {
		returned, p.buffer = p.buffer, nil
	}
	now := time.Now()
	p.replaceNext()
	wait := min(p.resize(ctx, now), p.retireIdle(now), p.pace.wait(now, len(p.buffer)))
	p.mu.Unlock()
	p.giveBack(returned)
	return wait
}

// resize starts and stops processes and returns how long until it must look again. The caller holds mu.
func (p *Pool) resize(ctx context.Context, now time.Time) time.Duration {
	q, _ := p.Settings()
	d := Decide(p.measure(q, now))
	if p.paused() && p.starting == 0 && len(p.members) < q.MaxWorkers {
		d.Start = max(1, d.Start) // a try, whether or not anything waits
	}
	if d.Start+d.Stop > 0 && d != p.decision {
		p.Log.Debug("workers", "queue", p.Queue, "start", d.Start, "stop", d.Stop, "why", d.Reason)
	}
	p.decision = d
	p.shrink(d.Stop)
	wait := time.Hour
	if d.Again > 0 {
		wait = d.Again
	}
	if d.Start > 0 {
		if pause := p.circuit.next.Sub(now); pause > 0 {
			return min(wait, pause)
		}
		p.start(ctx, d.Start)
	}
	return wait
}

// measure returns the load. The caller holds mu.
func (p *Pool) measure(q settings.Queue, now time.Time) Load {
	l := Load{
		Starting: p.starting, Capacity: p.starting * q.Slots, Min: q.MinWorkers, Max: q.MaxWorkers, Slots: q.Slots,
		MeanRun: p.load.run, StartCost: p.load.start,
	}
	for _, m := range p.members {
		if !m.ready() {
			l.Leaving++
			continue
		}
		l.Ready++
		l.Capacity += m.process.Slots()
		if m.suspect {
			l.Running += m.process.Slots()
		} else {
			l.Running += len(m.running)
		}
	}
	l.Waiting = len(p.buffer)
	for _, j := range p.buffer[:min(l.Waiting, q.MaxWorkers*q.Slots)] { // more would not change the decision
		if j.Suspect {
			l.Waiting += q.Slots - 1
		}
	}
	if l.Waiting > 0 {
		l.Stalled = now.Sub(p.stalled)
	}
	return l
}

// shrink lets n processes go, those with the fewest jobs first and of these the newest. The caller holds mu.
func (p *Pool) shrink(n int) {
	if n == 0 {
		return
	}
	var staying []*member
	for _, m := range slices.Backward(p.members) {
		if m.ready() {
			staying = append(staying, m)
		}
	}
	slices.SortStableFunc(staying, func(a, b *member) int { return cmp.Compare(len(a.running), len(b.running)) })
	for _, m := range staying[:min(n, len(staying))] {
		m.leave(job.ExitScaleDown)
	}
}

// start begins n starts. The caller holds mu.
func (p *Pool) start(ctx context.Context, n int) {
	if p.circuit.failures > 0 {
		n = 1 // until one has proven itself
		if p.starting > 0 || slices.ContainsFunc(p.members, (*member).failing) {
			return
		}
	}
	for range n {
		p.starting++
		made := p.current
		p.starts.Go(func() {
			began := time.Now()
			process, err := p.Launcher.Launch(ctx, p)
			p.started(ctx, process, err, made, began)
		})
	}
}

// started takes the result of a start.
func (p *Pool) started(ctx context.Context, process Process, err error, made int, began time.Time) {
	if err == nil {
		p.Ender.WorkerStarted(p.Queue, process.ID(), process.PID())
	}
	var ended []job.Exit
	p.mu.Lock()
	p.starting--
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(err, context.Canceled)): // it was given up
	case err != nil:
		ended = []job.Exit{{Reason: job.ExitFailedStart, Code: -1, Age: time.Since(began), Note: err.Error()}}
		p.exits[job.ExitFailedStart]++
		p.failed(didNotStart, err.Error(), began)
	default:
		if p.circuit.started() {
			p.Log.Info("a worker could be started; the queue goes on", "queue", p.Queue)
		}
		p.load.started(time.Since(began))
		ended = p.admit(process, made, began)
	}
	p.mu.Unlock()
	for _, exit := range ended {
		p.Ender.WorkerEnded(p.Queue, exit)
	}
	p.Kick()
}

// Broken opens the circuit before the first start: the queue's program is known not to start. One is tried from time to time.
func (p *Pool) Broken(err error) {
	p.mu.Lock()
	p.circuit.broken(err.Error(), time.Now())
	p.mu.Unlock()
	p.Kick()
}

// failed takes a start that began some time ago and failed, and what became of it in words. The caller holds mu.
func (p *Pool) failed(what, reason string, began time.Time) {
	if p.circuit.failed(reason, began, time.Now()) {
		p.Log.Error("no worker can be started; the queue waits until one can", "queue", p.Queue, "error", reason)
	} else {
		p.Log.Warn(what, "queue", p.Queue, "error", reason)
	}
}

const (
	didNotStart = "a worker did not start"
	didNothing  = "a worker ended before it had finished anything"
)

// admit makes a started process a member, unless it has ended by now: then it returns its end. The caller holds mu.
func (p *Pool) admit(process Process, made int, began time.Time) []job.Exit {
	if exit, ended := p.early[process.ID()]; ended {
		delete(p.early, process.ID())
		if !p.stopping {
			p.failed(didNothing, exit.String()+said(exit.Tail), began)
		}
		return []job.Exit{exit}
	}
	p.members = append(p.members, &member{process: process, made: made, running: map[*job.Job]time.Time{}, idleSince: time.Now()})
	slices.SortFunc(p.members, func(a, b *member) int { return cmp.Compare(a.process.ID(), b.process.ID()) })
	if p.stopping {
		process.Kill(job.ExitStop) // nothing is in it
		return nil
	}
	p.dispatch()
	return nil
}

// retireIdle ends processes that were idle or lived for too long, and returns how long until the next will have been. The
// caller holds mu.
func (p *Pool) retireIdle(now time.Time) time.Duration {
	q, _ := p.Settings()
	staying := 0
	for _, m := range p.members {
		if m.ready() {
			staying++
		}
	}
	wait := time.Hour
	for _, m := range slices.Backward(p.members) {
		if !m.ready() {
			continue
		}
		if q.WorkerLifetime > 0 {
			left := q.WorkerLifetime - now.Sub(m.process.Since())
			if left <= 0 {
				m.leave(job.ExitLifetime)
				staying--
				continue
			}
			wait = min(wait, left)
		}
		if len(m.running) > 0 || staying <= q.MinWorkers || q.WorkerIdle <= 0 {
			continue
		}
		left := q.WorkerIdle - now.Sub(m.idleSince)
		if left > 0 {
			wait = min(wait, left)
			continue
		}
		m.leave(job.ExitIdle)
		staying--
	}
	return wait
}

// giveBack ends jobs that never began, the newest first, so that the oldest ends at the head of the queue.
func (p *Pool) giveBack(jobs []*job.Job) {
	for _, j := range slices.Backward(jobs) {
		p.Ender.End(j, job.Outcome{End: job.Returned, Ended: time.Now()})
	}
}
