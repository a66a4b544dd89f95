package intake_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// pool is a queue's pool in one goroutine a job: slots run, the rest waits.
type pool struct {
	ender intake.Ender
	run   func(r *run) job.Outcome

	mu       sync.Mutex
	slots    int
	buffer   int
	waiting  []*job.Job
	running  map[*job.Job]*run
	offered  []string // keys, in the order in which they came
	most     int      // the most jobs that it had at once
	stopping bool
	working  sync.WaitGroup
}

// run is one job that runs.
type run struct {
	*job.Job
	cancelled   chan struct{} // closed when it is to end on request
	interrupted chan struct{} // closed when it is to end for the stop
	cancelOnce  sync.Once
}

// untilTold runs until it is told to end.
func untilTold(r *run) job.Outcome {
	select {
	case <-r.cancelled:
		return job.Outcome{End: job.Cancelled, Fault: fault.New(fault.Cancelled, "cancelled")}
	case <-r.interrupted:
		return job.Outcome{End: job.Interrupted, Fault: fault.New(fault.Interrupted, "stopped")}
	}
}

func atOnce(*run) job.Outcome { return job.Outcome{End: job.Succeeded, Result: []byte(`{"ok":true}`)} }

func newPool(ender intake.Ender, slots, buffer int, f func(r *run) job.Outcome) *pool {
	return &pool{ender: ender, run: f, slots: slots, buffer: buffer, running: map[*job.Job]*run{}}
}

func (p *pool) Capacity() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return 0
	}
	return p.slots + p.buffer
}

func (p *pool) resize(slots, buffer int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots, p.buffer = slots, buffer
	p.dispatch()
}

func (p *pool) Offer(j *job.Job) {
	p.mu.Lock()
	p.offered = append(p.offered, j.ID.Key)
	if p.stopping {
		p.mu.Unlock()
		p.ender.End(j, job.Outcome{End: job.Returned, Ended: time.Now()})
		return
	}
	p.waiting = append(p.waiting, j)
	p.most = max(p.most, len(p.waiting)+len(p.running))
	p.dispatch()
	p.mu.Unlock()
}

// dispatch starts what may run. The caller holds mu.
func (p *pool) dispatch() {
	for !p.stopping && len(p.waiting) > 0 && len(p.running) < p.slots {
		r := &run{Job: p.waiting[0], cancelled: make(chan struct{}), interrupted: make(chan struct{})}
		p.waiting = p.waiting[1:]
		p.running[r.Job] = r
		p.working.Go(func() {
			started := time.Now()
			o := p.run(r)
			o.Started, o.Ended = started, time.Now()
			p.mu.Lock()
			delete(p.running, r.Job)
			p.dispatch()
			p.mu.Unlock()
			p.ender.End(r.Job, o)
		})
	}
}

func (p *pool) Cancel(j *job.Job) {
	p.mu.Lock()
	r := p.running[j]
	i := slices.Index(p.waiting, j)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	p.mu.Unlock()
	switch {
	case r != nil:
		r.cancelOnce.Do(func() { close(r.cancelled) })
	case i >= 0:
		p.ender.End(j, job.Outcome{End: job.Cancelled, Fault: fault.New(fault.Cancelled, "before it began"), Ended: time.Now()})
	}
}

// stop gives back what waits, the newest first, interrupts what runs, and returns when nothing is left.
func (p *pool) stop() {
	p.mu.Lock()
	p.stopping = true
	waiting := p.waiting
	p.waiting = nil
	for _, r := range p.running {
		close(r.interrupted)
	}
	p.mu.Unlock()
	for _, j := range slices.Backward(waiting) {
		p.ender.End(j, job.Outcome{End: job.Returned, Ended: time.Now()})
	}
	p.working.Wait()
}

func (p *pool) load() (running, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.running), len(p.waiting)
}

func (p *pool) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.offered)
}

// judge decides as the controller does, with limits that the tests do not reach.
type judge struct{}

func (judge) End(j *job.Job, o job.Outcome) { j.Decide(verdictOf(j, o)) }

func verdictOf(j *job.Job, o job.Outcome) job.Verdict {
	v := job.Verdict{Counters: j.Counters, KeepFor: time.Hour, History: j.History}
	if o.End != job.Returned {
		v.History = task.Remember(j.History, task.Attempt{Number: j.Attempt(), Message: "run " + strconv.Itoa(j.Attempt())})
	}
	if o.Fault != nil {
		v.Reason = o.Fault.Error()
	}
	switch {
	case o.End == job.Succeeded:
		v.Move, v.State = job.Finish, task.Completed
	case o.End == job.Expired:
		v.Move, v.State = job.Bury, task.Expired
	case o.End == job.Cancelled:
		v.Move, v.State = job.Finish, task.Cancelled
	case o.End == job.Returned && o.Fault != nil:
		v.Move, v.State, v.Suspect, v.RetryAt = job.Defer, task.Waiting, j.Suspect, o.Ended.Add(*o.Fault.RetryAfter)
		return v
	case o.End == job.Returned:
		v.Move, v.State, v.Suspect = job.GiveBack, task.Waiting, j.Suspect
		return v
	case o.End == job.Interrupted:
		v.Counters.Interruptions++
		v.Move, v.State = job.GiveBack, task.Waiting
	case o.End == job.Killed && o.Suspect:
		v.Move, v.State, v.Suspect = job.GiveBack, task.Waiting, true
	case o.End == job.Killed:
		v.Counters.Kills++
		v.Move, v.State = job.GiveBack, task.Waiting
	case o.Fault.Permanent:
		v.Counters.Failures++
		v.Move, v.State = job.Bury, task.Dead
	default:
		v.Counters.Failures++
		v.Move, v.State, v.RetryAt = job.Retry, task.Failed, o.Ended
		if o.Fault.RetryAfter != nil {
			v.RetryAt = o.Ended.Add(*o.Fault.RetryAfter)
		}
	}
	v.Event = &task.Event{ID: j.ID, State: v.State, At: o.Ended, Attempts: j.Attempt()}
	if v.State.Ended() {
		v.Record = &task.Task{ID: j.ID, Kind: j.Kind, State: v.State, Counters: v.Counters, Result: o.Result, Fault: o.Fault, Ended: o.Ended, Attempts: j.Attempt()}
	}
	return v
}

// manager is an intake that runs, with its pool.
type manager struct {
	t      testing.TB
	in     *intake.Intake
	pool   *pool
	log    *journal
	cancel context.CancelFunc
	giveUp chan struct{}
	done   chan error
	ended  bool
}

// start runs an intake of one queue until the end of the test.
func start(t testing.TB, c redis.UniversalClient, slots, buffer int, f func(r *run) job.Outcome) *manager {
	t.Helper()
	return startWith(t, c, slots, buffer, f, intake.Lane{
		Kind: func() string { return kind }, Check: func([]byte) error { return nil },
		Entry: func() task.Entry { return task.Entry{Queue: queue, Kind: kind} },
	})
}

func startWith(t testing.TB, c redis.UniversalClient, slots, buffer int, f func(r *run) job.Outcome, lane intake.Lane) *manager {
	t.Helper()
	m := &manager{t: t, log: &journal{}, giveUp: make(chan struct{}), done: make(chan error, 1)}
	m.pool = newPool(judge{}, slots, buffer, f)
	lane.Queue, lane.Dispatcher = queue, m.pool
	m.in = intake.New(intake.Deps{Redis: c, Ender: judge{}, Log: m.log.logger()})
	served := m.in.Queue(lane)
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	go func() { m.done <- serve(ctx, m.in, served, m.giveUp) }()
	t.Cleanup(func() {
		if !m.ended {
			_ = m.stop()
		}
		if t.Failed() {
			t.Log(m.log.with("level="))
		}
	})
	return m
}

// leftError says how many tasks a stop left behind.
type leftError int

func (e leftError) Error() string { return fmt.Sprintf("%d tasks are left behind", int(e)) }

// serve runs an intake and its only queue as the manager does.
func serve(ctx context.Context, in *intake.Intake, q *intake.Queue, giveUp <-chan struct{}) error {
	helping, stopHelping := context.WithCancel(context.Background())
	var helpers sync.WaitGroup
	helpers.Go(func() { _ = in.Run(helping, giveUp) })
	left, err := q.Run(ctx, giveUp)
	stopHelping()
	helpers.Wait()
	if left > 0 {
		return errors.Join(err, leftError(left))
	}
	return err
}

// stop stops pool and intake as the manager does and returns what Run returned.
func (m *manager) stop() error {
	m.t.Helper()
	m.begin()
	return m.await()
}

// begin begins the stop, and returns when the pool is empty.
func (m *manager) begin() {
	m.cancel()
	m.pool.stop()
}

func (m *manager) await() error {
	m.t.Helper()
	m.ended = true
	select {
	case err := <-m.done:
		return err
	case <-time.After(patience):
		m.t.Fatalf("Run did not return in %s", patience)
		return nil
	}
}
