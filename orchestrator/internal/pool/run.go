package pool

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// stopGrace is how long processes get to end by themselves once they were told to for a stop, before they are killed.
const stopGrace = time.Second

// Run keeps the number of processes right until ctx ends, and then empties the pool.
func (p *Pool) Run(ctx context.Context) error {
	starting, cancelStarts := context.WithCancel(ctx)
	defer cancelStarts()
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
	p.empty()
	p.starts.Wait()
	return nil
}

// adjust starts and ends processes as the load asks for, and returns how long until it must look again.
func (p *Pool) adjust(ctx context.Context) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.dispatch()
	d := p.decide()
	if d.Start+d.Stop > 0 && d != p.decision {
		p.Log.Debug("workers", "queue", p.Queue, "start", d.Start, "stop", d.Stop, "why", d.Reason)
	}
	p.decision = d
	wait := time.Hour
	if p.circuit.open() && len(p.members)+p.starting == 0 {
		d.Start = 1 // a try, whether or not anything waits
	}
	if d.Start > 0 {
		if pause := p.circuit.next.Sub(now); pause > 0 {
			wait = pause
		} else {
			p.start(ctx, d.Start)
		}
	}
	for _, m := range p.members[len(p.members)-min(d.Stop, len(p.members)):] {
		m.process.Drain(job.ExitScaleDown)
	}
	return min(wait, p.retireIdle(now))
}

func (p *Pool) decide() Decision {
	q, _ := p.Settings()
	l := Load{Starting: p.starting, Min: q.MinWorkers, Max: q.MaxWorkers, Slots: q.Slots, Waiting: len(p.buffer), MeanRun: p.load.run, StartCost: p.load.start}
	for _, m := range p.members {
		l.Running += len(m.running)
		if !m.process.Leaving() {
			l.Ready++
		}
	}
	return Decide(l)
}

// start begins n starts. The caller holds mu.
func (p *Pool) start(ctx context.Context, n int) {
	if p.circuit.failures > 0 {
		n = 1 // until one succeeds
		if p.starting > 0 {
			return
		}
	}
	for range n {
		p.starting++
		p.starts.Go(func() {
			began := time.Now()
			process, err := p.Launcher.Launch(ctx, p)
			p.started(ctx, process, err, time.Since(began))
		})
	}
}

// started takes the result of a start.
func (p *Pool) started(ctx context.Context, process Process, err error, took time.Duration) {
	p.mu.Lock()
	p.starting--
	var returned []*job.Job
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(err, context.Canceled)):
	case err != nil:
		wasOpen := p.circuit.open()
		p.circuit.failed(err, time.Now())
		if p.circuit.open() {
			returned, p.buffer = p.buffer, nil
			if !wasOpen {
				p.Log.Error("no worker can be started; the queue waits", "queue", p.Queue, "error", err)
			}
		} else {
			p.Log.Warn("a worker did not start", "queue", p.Queue, "error", err)
		}
	default:
		if p.circuit.open() {
			p.Log.Info("a worker could be started; the queue goes on", "queue", p.Queue)
		}
		p.circuit.succeeded()
		p.load.started(took)
		p.admit(process)
	}
	p.mu.Unlock()
	p.giveBack(returned)
	p.Kick()
}

// admit makes a started process a member. The caller holds mu.
func (p *Pool) admit(process Process) {
	if p.early[process.ID()] {
		delete(p.early, process.ID())
		return
	}
	p.members = append(p.members, &member{process: process, running: map[*job.Job]struct{}{}, idleSince: time.Now()})
	slices.SortFunc(p.members, func(a, b *member) int { return int(a.process.ID()) - int(b.process.ID()) }) //nolint:gosec // small
	if p.stopping {
		process.Drain(job.ExitStop)
		return
	}
	p.dispatch()
}

// retireIdle ends processes that were idle or lived for too long, and returns how long until the next will have been. The
// caller holds mu.
func (p *Pool) retireIdle(now time.Time) time.Duration {
	q, _ := p.Settings()
	staying := 0
	for _, m := range p.members {
		if !m.process.Leaving() {
			staying++
		}
	}
	wait := time.Hour
	for _, m := range slices.Backward(p.members) {
		if m.process.Leaving() {
			continue
		}
		if q.WorkerLifetime > 0 {
			left := q.WorkerLifetime - now.Sub(m.process.Since())
			if left <= 0 {
				m.process.Drain(job.ExitLifetime)
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
		m.process.Drain(job.ExitIdle)
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
