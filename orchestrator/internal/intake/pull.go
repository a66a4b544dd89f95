package intake

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
)

const (
	// basePoll is how often an idle lane looks by itself: for tasks of clients that publish nothing, delayed tasks that
	// are due, and publishes that were lost.
	basePoll = 250 * time.Millisecond
	// pullBatch is how many tasks one script takes at most.
	pullBatch = 64
	// refillWait is how long a lane with a backlog waits for more room, so that one script takes several tasks.
	refillWait = time.Millisecond
	// callTimeout bounds one call to Redis.
	callTimeout = 5 * time.Second
	// brokerPause is how long a lane waits after a call that failed.
	brokerPause = 250 * time.Millisecond
)

// puller takes tasks from Redis, as many as there is room for, in a goroutine of its own.
type puller struct {
	lane   *lane
	nudged chan struct{} // has an element when it should look again
	woken  atomic.Bool   // somebody said that there is work

	timer         *time.Timer
	lastPull      time.Time
	backlog       bool // there was more than was taken
	waitedForRoom bool
	// token is that of a call whose answer was lost; empty when there is none.
	token string
}

func newPuller(l *lane) *puller {
	return &puller{lane: l, nudged: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
}

// nudge makes it look again.
func (p *puller) nudge() {
	select {
	case p.nudged <- struct{}{}:
	default:
	}
}

// wake says that there is work in the queue.
func (p *puller) wake() {
	p.woken.Store(true)
	p.nudge()
}

// run takes tasks until the lane closes, and then finds out what an unanswered call took, unless giveUp comes first.
func (p *puller) run(giveUp <-chan struct{}) {
	for !p.lane.closing() {
		room := p.room()
		switch {
		case p.token != "":
			p.pull(room)
		case room <= 0 || !p.due():
			p.pause(p.untilPoll(), p.nudged)
		case p.backlog && room < p.refillAt() && !p.waitedForRoom:
			p.waitedForRoom = true
			p.pause(refillWait, p.nudged)
		default:
			p.waitedForRoom = false
			p.pull(room)
		}
	}
	for p.token != "" {
		if p.pull(0); p.token == "" {
			return
		}
		p.timer.Reset(brokerPause)
		select {
		case <-p.timer.C:
		case <-giveUp:
			return
		}
	}
}

// room is how many more tasks the pool would take.
func (p *puller) room() int { return p.lane.Dispatcher.Capacity() - p.lane.hand.size() }

// refillAt is the room from which a pull is worth a call while there is a backlog.
func (p *puller) refillAt() int { return min(pullBatch, max(1, p.lane.Dispatcher.Capacity()/4)) }

// due reports whether there may be something to take: there was more than was taken, somebody said so, or it is time to look.
func (p *puller) due() bool {
	if p.woken.Swap(false) {
		return true
	}
	return p.backlog || time.Since(p.lastPull) >= basePoll
}

// untilPoll is how long until it looks by itself. It is overdue while there is no room: then it looks for room.
func (p *puller) untilPoll() time.Duration {
	if d := basePoll - time.Since(p.lastPull); d > 0 {
		return d
	}
	return basePoll
}

// pause waits; a nudge or the lane's end cut it short.
func (p *puller) pause(d time.Duration, nudged <-chan struct{}) {
	p.timer.Reset(d)
	select {
	case <-nudged:
	case <-p.timer.C:
	case <-p.lane.closed:
	}
}

// pull takes up to n tasks, and what an unanswered call took. A call that is not answered is repeated with its token until
// it is, so that no task is lost on the way.
func (p *puller) pull(n int) {
	l := p.lane
	n = max(0, min(n, pullBatch))
	again := "1"
	if p.token == "" {
		p.token, again = rand.Text(), ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	now := time.Now()
	values, err := l.scripts.dequeue.run(ctx, l.Redis, l.dequeueKeys,
		[]any{now.Add(leaseDuration).Unix(), l.keys.TaskPrefix(), n, p.token, again}).StringSlice()
	p.lastPull = time.Now()
	l.health.took(l.Queue, now, err)
	if err != nil {
		p.backlog = false
		p.pause(brokerPause, nil)
		return
	}
	tasks := readHeld(l.Queue, p.token, values, now)
	p.token = ""
	p.backlog = n > 0 && len(tasks) >= n
	for _, t := range tasks {
		t.job = t.newJob(l.Queue)
	}
	l.hand.add(tasks...)
	readable := make([]*held, 0, len(tasks))
	for _, t := range tasks {
		switch {
		case t.message == nil:
			l.bury(t)
			continue
		case t.before == nil:
			l.handDown(t)
		}
		readable = append(readable, t)
	}
	l.fetched.push(readable)
}

// bury ends a task whose message cannot be read.
func (l *lane) bury(t *held) {
	l.Log.Error("a task's message cannot be read; it is kept among the dead letters", "queue", l.Queue, "task", t.key)
	f := fault.New(fault.InvalidPayload, "its message in the queue cannot be read: it was not written by a client of Drover or asynq")
	l.Ender.End(t.job, job.Outcome{End: job.Faulted, Fault: f.AsPermanent(), Ended: time.Now()})
	l.settler.put(t, <-t.job.Verdict())
}
