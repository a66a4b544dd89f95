package intake

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

const (
	// settleBatch is how many verdicts one script carries out at most, and settleBytes how much it carries, but for a
	// single one that is larger.
	settleBatch = 64
	settleBytes = 8 << 20
)

// settler carries out verdicts, as many at once as wait.
type settler struct {
	lane *lane
	kick chan struct{}

	mu      sync.Mutex
	waiting []*settlement
	closed  bool
}

func newSettler(l *lane) *settler { return &settler{lane: l, kick: make(chan struct{}, 1)} }

// put takes the verdict of a held task.
func (s *settler) put(t *held, v job.Verdict) {
	c := newSettlement(t, v, time.Now())
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.waiting = append(s.waiting, c)
	}
	s.mu.Unlock()
	if closed {
		close(t.gone) // it stays in the hand: it is among those that are left
		return
	}
	s.wake()
}

func (s *settler) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// close ends run once nothing waits.
func (s *settler) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wake()
}

// take returns the next batch, and whether there will be no more.
func (s *settler) take() (batch []*settlement, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < min(len(s.waiting), settleBatch) {
		size += s.waiting[n].size()
		if n > 0 && size > settleBytes {
			break
		}
		n++
	}
	batch = slices.Clone(s.waiting[:n])
	s.waiting = slices.Delete(s.waiting, 0, n)
	return batch, s.closed
}

// run carries out verdicts until close. Once giveUp is closed it tries none again, and after one that failed no more at all.
func (s *settler) run(giveUp <-chan struct{}) {
	hopeless := false
	for range s.kick {
		for {
			batch, closed := s.take()
			if len(batch) == 0 {
				if closed {
					return
				}
				break
			}
			if hopeless {
				s.leave(batch)
				continue
			}
			hopeless = !s.carryOut(batch, giveUp)
		}
	}
}

// carryOut writes a batch of verdicts, again and again while Redis is away. It reports false when it was given up.
func (s *settler) carryOut(batch []*settlement, giveUp <-chan struct{}) bool {
	// settle.lua wants it so.
	slices.SortStableFunc(batch, func(a, b *settlement) int {
		if a.move == moveGiveBack && b.move == moveGiveBack {
			return strings.Compare(b.task.place, a.task.place)
		}
		return strings.Compare(a.move, b.move)
	})
	for tries := 0; ; tries++ {
		began := time.Now()
		results, err := s.write(batch, began)
		s.lane.health.stored(s.lane.Queue, began, err)
		if err == nil {
			s.finish(batch, results, tries > 0)
			return true
		}
		timer := time.NewTimer(brokerPause)
		select {
		case <-timer.C:
		case <-giveUp:
			timer.Stop()
			s.leave(batch)
			return false
		}
	}
}

// finish lets go of settled tasks.
func (s *settler) finish(batch []*settlement, moved []int64, again bool) {
	l := s.lane
	for i, c := range batch {
		if (i >= len(moved) || moved[i] != 1) && !again { // else most likely an earlier try did it, and its answer was lost
			l.Log.Warn("the end of a run does not count: another manager has taken its task over, or Redis has lost it", "queue", l.Queue, "task", c.task.key)
		} else {
			l.totals.add(c.verdict)
		}
		l.hand.release(c.task)
	}
	l.puller.nudge()
}

// leave leaves tasks active in Redis: their leases run out, and they run again. They stay in the hand, so that the stop's
// report counts them.
func (s *settler) leave(batch []*settlement) {
	for _, c := range batch {
		close(c.task.gone)
	}
}

// write runs settle.lua.
func (s *settler) write(batch []*settlement, now time.Time) ([]int64, error) {
	l := s.lane
	day := now.UTC().Format(time.DateOnly)
	keys := []string{
		l.keys.Active(), l.keys.Lease(), l.keys.Pending(), l.keys.Retry(), l.keys.Archived(), l.keys.CompletedSet(),
		l.keys.Processed(), l.keys.Processed() + ":" + day, l.keys.FailedRuns(), l.keys.FailedRuns() + ":" + day, l.keys.Scheduled(), l.keys.Deaths(),
	}
	const perTask = 14 // at most
	args := make([]any, 0, 8+perTask*len(batch))
	args = append(args, l.keys.TaskPrefix(), l.keys.Record(""), l.keys.EventsChannel(),
		now.Add(statsKept).Unix(), now.Unix(), now.UnixNano(), now.Add(-archiveKept).Unix(), archiveSweep)
	for _, c := range batch {
		args = c.appendTo(args)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	return l.scripts.settle.run(ctx, l.Redis, keys, args).Int64Slice()
}
