package pool

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// stopGrace is how long processes get to end by themselves once they were told to for a stop, before they are killed.
const stopGrace = 750 * time.Millisecond

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
	p.seat.Quit()
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
	lapsed, nextLapse := p.takeLapsed(now)
	wait := min(nextLapse, p.replaceNext(ctx, now), p.resize(ctx, now), p.retireIdle(now), p.pace.wait(now, len(p.buffer)))
	p.mu.Unlock()
	p.giveBack(returned)
	p.expire(lapsed)
	return wait
}

// start begins n starts, for which the budget has given its leave. The caller holds mu.
func (p *Pool) start(ctx context.Context, n int) {
	for range n {
		p.launch(ctx, false)
	}
}

// launch begins a start, in a rollout one that takes another's place. The caller holds mu.
func (p *Pool) launch(ctx context.Context, replaces bool) {
	p.starting++
	s := start{made: p.current, replaces: replaces, began: time.Now()}
	p.starts.Go(func() {
		process, err := p.Launcher.Launch(ctx, p)
		p.started(ctx, process, err, s)
	})
}

// start is a start that is under way.
type start struct {
	made     int // the generation
	replaces bool
	began    time.Time
}

// started takes the result of a start.
func (p *Pool) started(ctx context.Context, process Process, err error, s start) {
	if err == nil {
		p.Ender.WorkerStarted(p.Queue, process.ID(), process.PID())
	}
	var ended []job.Exit
	p.mu.Lock()
	p.starting--
	if s.replaces {
		p.roll.starting = false
	}
	if err != nil {
		p.seat.Give()
	}
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(err, context.Canceled)): // it was given up
	case err != nil:
		ended = []job.Exit{{Reason: job.ExitFailedStart, Code: -1, Age: time.Since(s.began), Note: err.Error()}}
		p.exits[job.ExitFailedStart]++
		p.failed(didNotStart, err.Error(), s.began, s.made)
	default:
		if p.circuit.started() {
			p.Log.Info("a worker could be started; the queue goes on", "queue", p.Queue)
		}
		p.load.started(time.Since(s.began))
		ended = p.admit(process, s)
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

// failed takes a start of a generation that began some time ago and failed, and what became of it in words. The caller holds mu.
func (p *Pool) failed(what, reason string, began time.Time, made int) {
	if made == p.current {
		p.giveUpRollout(reason)
	}
	if p.circuit.failed(reason, what == didNothing, began, time.Now()) {
		p.Log.Error(p.circuit.trouble()+"; the queue waits, and one is tried from time to time", "queue", p.Queue, "error", reason)
	} else {
		p.Log.Warn(what, "queue", p.Queue, "error", reason)
	}
}

const (
	didNotStart = "a worker did not start"
	didNothing  = "a worker ended before it had finished anything"
)

// admit makes a started process a member, unless it has ended by now: then it returns its end. The caller holds mu.
func (p *Pool) admit(process Process, s start) []job.Exit {
	if exit, ended := p.early[process.ID()]; ended {
		delete(p.early, process.ID())
		if !p.stopping {
			p.failed(didNothing, exit.String()+said(exit.Tail), s.began, s.made)
		}
		return []job.Exit{exit}
	}
	m := &member{process: process, made: s.made, running: map[*job.Job]time.Time{}, idleSince: time.Now()}
	if s.made != p.current {
		m.outdated = p.roll.reason
	}
	p.members = append(p.members, m)
	slices.SortFunc(p.members, func(a, b *member) int { return cmp.Compare(a.process.ID(), b.process.ID()) })
	if p.stopping {
		process.Kill(job.ExitStop) // nothing is in it
		return nil
	}
	if s.made == p.current || s.replaces {
		p.succeeded(s.replaces)
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
