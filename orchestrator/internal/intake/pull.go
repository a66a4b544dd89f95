package intake

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	// basePoll is how often an idle lane looks by itself: for tasks of clients that publish nothing, delayed tasks that
	// are due, and publishes that were lost.
	basePoll = 250 * time.Millisecond
	// longestPull bounds one call of asynq's dequeue. asynq takes its time at the beginning of the call as the beginning of
	// the lease, so it must be short against the lease.
	longestPull = time.Second
	// pullBatch is how many tasks one script takes at most.
	pullBatch = 64
	// refillWait is how long a lane with a backlog waits for more room, so that one script takes several tasks.
	refillWait = time.Millisecond
	// callTimeout bounds one call to Redis.
	callTimeout = 5 * time.Second
	// brokerPause is how long a lane waits after a call that failed.
	brokerPause = 250 * time.Millisecond
)

// next returns the message of the next task, or redis.Nil when there is none for now. asynq calls it from one goroutine.
func (l *lane) next() (string, error) {
	deadline := time.Now().Add(longestPull)
	for {
		if t := l.fetched.pop(); t != nil {
			return t.encoded, nil
		}
		if l.closing() || !time.Now().Before(deadline) {
			return "", redis.Nil
		}
		room := l.room()
		if room <= 0 || !l.due() {
			l.rest(deadline)
			continue
		}
		if l.backlog && room < l.refillAt() && !l.waitedForRoom {
			l.waitedForRoom = true
			l.pause(refillWait)
			continue
		}
		l.waitedForRoom = false
		l.pull(min(room, pullBatch))
	}
}

// room is how many more tasks the pool would take.
func (l *lane) room() int { return l.Dispatcher.Capacity() - l.hand.size() }

// refillAt is the room from which a pull is worth a call while there is a backlog.
func (l *lane) refillAt() int { return min(pullBatch, max(1, l.Dispatcher.Capacity()/4)) }

// due reports whether there may be something to take: there was more than was taken, somebody said so, or it is time to look.
func (l *lane) due() bool {
	if l.woken.Swap(false) {
		return true
	}
	return l.backlog || time.Since(l.lastPull) >= basePoll
}

// rest waits for a wake-up, for room, for the base poll or for the end of the call.
func (l *lane) rest(deadline time.Time) {
	wait := time.Until(deadline)
	if poll := basePoll - time.Since(l.lastPull); poll > 0 {
		wait = min(wait, poll)
	} else {
		wait = min(wait, basePoll) // there is no room: look again later
	}
	l.pause(wait)
}

func (l *lane) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	l.timer.Reset(d)
	select {
	case <-l.nudged:
	case <-l.timer.C:
	case <-l.closed:
	}
}

// pull takes up to n tasks.
func (l *lane) pull(n int) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	now := time.Now()
	holder := rand.Text()
	keys := []string{l.keys.Pending(), l.keys.Paused(), l.keys.Active(), l.keys.Lease()}
	values, err := l.scripts.dequeue.Run(ctx, l.Redis, keys, now.Add(leaseDuration).Unix(), l.keys.TaskPrefix(), n, holder).StringSlice()
	l.health.report(err)
	l.lastPull = time.Now()
	if err != nil {
		l.backlog = false
		l.trouble.note(l.Log, fmt.Errorf("take tasks from queue %s: %w", l.Queue, err))
		l.pauseUnlessClosed(brokerPause)
		return
	}
	l.trouble.over(l.Log, "tasks are taken again", "queue", l.Queue)
	tasks, unreadable := readHeld(l.Queue, holder, values, now)
	l.backlog = len(tasks)+len(unreadable) == n
	l.hand.add(tasks)
	l.hand.add(unreadable)
	l.fetched.push(tasks)
	for _, t := range unreadable {
		l.Log.Error("a task's message cannot be read; it is kept among the dead letters", "queue", l.Queue, "task", t.key)
		l.settler.put(t, job.Verdict{Move: job.Bury, State: task.Dead, Counters: t.counters, Reason: "unreadable message"}, nil)
	}
}

// pauseUnlessClosed is pause without the wake-ups.
func (l *lane) pauseUnlessClosed(d time.Duration) {
	l.timer.Reset(d)
	select {
	case <-l.timer.C:
	case <-l.closed:
	}
}
