package intake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// settleBatch is how many verdicts one script carries out at most.
const settleBatch = 64

// verdict is a decided task that waits to be settled.
type verdict struct {
	task *held
	job.Verdict
	done chan struct{} // closed when it has been carried out or given up; may be nil
}

// settler carries out verdicts, as many at once as wait.
type settler struct {
	lane *lane
	kick chan struct{}

	mu      sync.Mutex
	waiting []verdict
	closed  bool
}

func newSettler(l *lane) *settler { return &settler{lane: l, kick: make(chan struct{}, 1)} }

func (s *settler) put(t *held, v job.Verdict, done chan struct{}) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.lane.hand.release(t)
		if done != nil {
			close(done)
		}
		return
	}
	s.waiting = append(s.waiting, verdict{task: t, Verdict: v, done: done})
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// waitEmpty returns when the lane's hand is empty or giveUp is closed.
func (s *settler) waitEmpty(giveUp <-chan struct{}) {
	const look = 5 * time.Millisecond
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for s.lane.hand.size() > 0 {
		select {
		case <-ticker.C:
		case <-giveUp:
			return
		}
	}
}

// close ends run and lets go of whatever was not carried out.
func (s *settler) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// run carries out verdicts until close; after giveUp it tries none again.
func (s *settler) run(giveUp <-chan struct{}) {
	for range s.kick {
		for {
			s.mu.Lock()
			batch := s.waiting[:min(len(s.waiting), settleBatch)]
			s.waiting = s.waiting[len(batch):]
			closed := s.closed
			s.mu.Unlock()
			if len(batch) == 0 {
				if closed {
					return
				}
				break
			}
			s.carryOut(batch, giveUp)
		}
	}
}

// carryOut writes a batch of verdicts, again and again while Redis is away.
func (s *settler) carryOut(batch []verdict, giveUp <-chan struct{}) {
	l := s.lane
	// Of those that go back, the newest first, so that the oldest ends at the head.
	slices.SortStableFunc(batch, func(a, b verdict) int {
		if a.Move == job.GiveBack && b.Move == job.GiveBack {
			return b.task.received.Compare(a.task.received)
		}
		return 0
	})
	for {
		results, err := s.write(batch)
		l.health.report(err)
		if err == nil {
			l.trouble.over(l.Log, "results are stored again", "queue", l.Queue)
			s.finish(batch, results)
			return
		}
		l.trouble.note(l.Log, fmt.Errorf("store what became of %d tasks of queue %s: %w", len(batch), l.Queue, err))
		timer := time.NewTimer(brokerPause)
		select {
		case <-timer.C:
		case <-giveUp:
			timer.Stop()
			s.giveUp(batch)
			return
		}
	}
}

// finish lets go of settled tasks.
func (s *settler) finish(batch []verdict, moved []int64) {
	for i, v := range batch {
		// Also when it was no longer ours: asynq must not end a run that may be somebody else's by now.
		s.lane.hand.settle(v.task)
		if i >= len(moved) || moved[i] != 1 {
			s.lane.Log.Warn("a task had been taken away before its end could be stored; it will run again", "queue", s.lane.Queue, "task", v.task.key)
		}
		s.lane.hand.release(v.task)
		if v.done != nil {
			close(v.done)
		}
	}
	s.lane.nudge()
}

// giveUp leaves tasks active in Redis: their leases run out, and they run again. They stay in the hand, so that the stop's
// report counts them.
func (s *settler) giveUp(batch []verdict) {
	for _, v := range batch {
		s.lane.hand.settle(v.task)
		if v.done != nil {
			close(v.done)
		}
	}
}

// write runs settle.lua.
func (s *settler) write(batch []verdict) ([]int64, error) {
	l := s.lane
	now := time.Now()
	day := now.UTC().Format(time.DateOnly)
	keys := []string{
		l.keys.Active(), l.keys.Lease(), l.keys.Pending(), l.keys.Retry(), l.keys.Archived(), l.keys.CompletedSet(),
		l.keys.Processed(), l.keys.Processed() + ":" + day, l.keys.FailedRuns(), l.keys.FailedRuns() + ":" + day,
	}
	args := make([]any, 0, 8+14*len(batch))
	args = append(args, l.keys.TaskPrefix(), l.keys.Record(""), l.keys.EventsChannel(), now.Add(statsKept).Unix(), now.Unix(), now.UnixNano(), now.Add(-archiveKept).Unix(), archiveSize)
	for i := range batch {
		args = append(args, batch[i].args(now)...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	return l.scripts.settle.Run(ctx, l.Redis, keys, args...).Int64Slice()
}

// args are the verdict's values for settle.lua.
func (v *verdict) args(now time.Time) []any {
	var msg, record, event []byte
	move, score, unique := "", int64(0), ""
	switch v.Move {
	case job.Finish:
		move = "f"
		if v.task.message == nil {
			break
		}
		unique = v.task.message.UniqueKey
		if keep := v.task.message.Retention; keep > 0 {
			score, msg = now.Unix()+keep, []byte(v.task.encoded)
		}
	case job.Retry:
		move, msg = "r", v.failedMessage(now)
		score = v.RetryAt.Add(time.Second - 1).Unix() // rounded up: asynq's clock has whole seconds
	case job.Bury:
		move, msg = "b", v.failedMessage(now)
	case job.GiveBack:
		move = "g"
	}
	if v.Record != nil && v.KeepFor >= time.Second {
		record = orNothing(task.EncodeRecord(v.Record))
	}
	if v.Event != nil {
		event = orNothing(task.EncodeEvents(v.Event))
	}
	return []any{
		v.task.key, v.task.holder, move, msg, score, record, int64(v.KeepFor / time.Second), event, unique, v.State.String(),
		v.Counters.Failures, v.Counters.Kills, v.Counters.Interruptions, v.Counters.Losses,
	}
}

// failedMessage is asynq's message with the failure noted, as asynq itself would have; an unreadable one stays as it is.
func (v *verdict) failedMessage(now time.Time) []byte {
	if v.task.message == nil {
		return []byte(v.task.encoded)
	}
	m := *v.task.message
	m.Retried++
	m.ErrorMsg = strings.ToValidUTF8(v.Reason, "\uFFFD")
	m.LastFailedAt = now.Unix()
	return m.Encode()
}

// orNothing drops what cannot be encoded, which takes a key that is not UTF-8: such a task has no record.
func orNothing(data []byte, err error) []byte {
	if err != nil {
		return nil
	}
	return data
}
