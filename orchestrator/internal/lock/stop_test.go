package lock_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/protocol/fault"
)

// A stop gives back what waits, the newest first, keeps the locks of what runs until its end, takes nothing more, and is over
// when all is released.
func TestStop(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		running := newJob("feeds", "a", "x")
		m.feeds.Offer(running)
		after(time.Second)
		var joined []*job.Job
		for i := range 5 {
			joined = append(joined, newJob("system", fmt.Sprint(i), "x"))
			m.system.Offer(joined[i])
			after(time.Millisecond)
		}
		ended := make(chan struct{})
		go func() { m.end(); close(ended) }()
		synctest.Wait()
		back := slices.Clone(joined)
		slices.Reverse(back)
		if !slices.Equal(m.all(&m.ended), back) {
			t.Errorf("given back in another order: %v", m.all(&m.ended))
		}
		for _, j := range joined {
			if o := m.outcome(j); o.End != job.Returned || o.Fault != nil {
				t.Errorf("%s: %+v", j.ID, o)
			}
		}
		late := newJob("feeds", "late", "z")
		m.feeds.Offer(late)
		if o := m.outcome(late); o.End != job.Returned || m.feeds.Capacity() != 0 {
			t.Errorf("a job offered to a stopped locker: %+v, capacity %d", o, m.feeds.Capacity())
		}
		after(time.Minute)
		select {
		case <-ended:
			t.Error("over while a job runs")
		default:
		}
		if m.isLost(running) || store.taken() != 1 {
			t.Error("the lock of a running job was not renewed during the stop")
		}
		m.finish(running)
		<-ended
		if store.taken() != 0 {
			t.Error("a lock is left")
		}
	})
}

// A stop that comes while locks are being taken ends every job, and leaves no lock.
func TestStopWhileTaking(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		store.set(func() {
			store.slow = func() (time.Duration, time.Duration) { return 100 * time.Millisecond, 100 * time.Millisecond }
		})
		var jobs []*job.Job
		for i := range 40 {
			j := newJob("feeds", fmt.Sprint(i), fmt.Sprint(i))
			jobs = append(jobs, j)
			m.feeds.Offer(j)
		}
		after(150 * time.Millisecond)
		m.end()
		for _, j := range jobs {
			if o := m.outcome(j); o.End != job.Returned || m.runs(j) {
				t.Errorf("%s: %+v, runs %v", j.ID, o, m.runs(j))
			}
		}
		if store.taken() != 0 {
			t.Errorf("%d locks left", store.taken())
		}
	})
}

// A job can be cancelled wherever it is: while its lock is taken, while it waits, and when it is in the pool.
func TestCancel(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		running, joined, taking := newJob("feeds", "a", "x"), newJob("system", "b", "x"), newJob("feeds", "c", "y")
		m.feeds.Offer(running)
		after(time.Second)
		m.system.Offer(joined)
		after(time.Second)
		store.set(func() {
			store.slow = func() (time.Duration, time.Duration) { return time.Second, time.Second }
		})
		m.feeds.Offer(taking)
		after(1500 * time.Millisecond)
		for _, j := range []*job.Job{running, joined, taking} {
			m.feeds.Cancel(j)
		}
		after(5 * time.Second)
		if !m.isCancelled(running) || m.outcome(running).End != 0 {
			t.Error("the pool was not asked to cancel the one that runs")
		}
		for _, j := range []*job.Job{joined, taking} {
			if o := m.outcome(j); o.End != job.Cancelled || o.Fault.Kind != fault.Cancelled || m.runs(j) {
				t.Errorf("%s: %+v, runs %v", j.ID, o, m.runs(j))
			}
		}
		if store.taken() != 1 {
			t.Errorf("%d locks, want the running one's", store.taken())
		}
		m.finish(running)
		m.end()
	})
}

// Jobs that wait for locks of others take no room of the pool's, and there are not too many of them: what is more goes back
// with a delay.
func TestAside(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		running := newJob("feeds", "a", "x")
		m.feeds.Offer(running)
		after(time.Second)
		for i := range lock.MaxAside + 3 {
			m.system.Offer(newJob("system", fmt.Sprint(i), "x"))
		}
		after(0)
		room := 0
		m.set(func() { room = m.room })
		if c := m.system.Capacity(); c != poolCapacity+lock.MaxAside || room != lock.MaxAside {
			t.Errorf("capacity %d, room %d", c, room)
		}
		over := m.all(&m.ended)
		if len(over) != 3 || m.outcome(over[0]).End != job.Returned || m.outcome(over[0]).Fault.RetryAfter == nil {
			t.Errorf("%d of 3 went back with a delay", len(over))
		}
		before := store.count()
		after(time.Minute)
		if perSecond := (store.count() - before) / 60; perSecond > lock.MaxAside/5 {
			t.Errorf("%d calls a second for jobs that wait", perSecond)
		}
		m.finish(running)
		after(20 * time.Second)
		offered := m.all(&m.offered)
		if m.system.Capacity() != poolCapacity+lock.MaxAside-1 || len(offered) != 2 {
			t.Fatalf("%d went on when the lock was free, want one", len(offered)-1)
		}
		stopped := make(chan struct{})
		go func() { m.end(); close(stopped) }()
		synctest.Wait()
		m.finish(offered[1])
		<-stopped
	})
}

// A job whose client's deadline passes while it waits has expired: nobody is to blame.
func TestDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, _ *memory, _ *ends) {
		running, hurried := newJob("feeds", "a", "x"), newJob("system", "b", "x")
		hurried.Deadline = time.Now().Add(5 * time.Second)
		m.feeds.Offer(running)
		after(time.Second)
		m.system.Offer(hurried)
		after(5 * time.Second)
		if o := m.outcome(hurried); o.End != job.Expired || o.Fault.Kind != fault.Timeout {
			t.Errorf("%+v %v", o, o.Fault)
		}
		m.finish(running)
		m.end()
	})
}

// A queue that is left gives back what waits in it, the newest first, and takes nothing more. What runs keeps its lock, and other
// queues notice nothing.
func TestLeaveQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		running := newJob("system", "a", "x")
		m.system.Offer(running)
		after(time.Second)
		var waits []*job.Job
		for i := range 3 {
			waits = append(waits, newJob("system", fmt.Sprint(i), "x"))
			m.system.Offer(waits[i])
			after(time.Millisecond)
		}
		other := newJob("feeds", "o", "x")
		m.feeds.Offer(other)
		after(time.Second)
		m.system.Leave()
		synctest.Wait()
		back := slices.Clone(waits)
		slices.Reverse(back)
		if !slices.Equal(m.all(&m.ended), back) {
			t.Errorf("given back: %v", m.all(&m.ended))
		}
		late := newJob("system", "late", "z")
		m.system.Offer(late)
		if o := m.outcome(late); o.End != job.Returned || m.system.Capacity() != 0 {
			t.Errorf("a job offered to a queue that is left: %+v, capacity %d", o, m.system.Capacity())
		}
		after(time.Minute)
		if m.isLost(running) || store.taken() != 1 || m.runs(other) || m.feeds.Capacity() == 0 {
			t.Error("the lock of a running job was not renewed, or another queue has noticed")
		}
		m.finish(running)
		after(20 * time.Second)
		if !m.runs(other) {
			t.Error("the lock was not handed on to another queue")
		}
		m.finish(other)
		m.end()
	})
}

// A queue that is left while its locks are being taken gives every job back, and leaves no lock.
func TestLeaveQueueWhileTaking(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *manager, store *memory, _ *ends) {
		store.set(func() {
			store.slow = func() (time.Duration, time.Duration) { return 100 * time.Millisecond, 100 * time.Millisecond }
		})
		var jobs []*job.Job
		for i := range 40 {
			jobs = append(jobs, newJob("feeds", fmt.Sprint(i), fmt.Sprint(i)))
			m.feeds.Offer(jobs[i])
		}
		after(150 * time.Millisecond)
		m.feeds.Leave()
		after(5 * time.Second)
		for _, j := range jobs {
			if o := m.outcome(j); o.End != job.Returned || m.runs(j) {
				t.Errorf("%s: %+v, runs %v", j.ID, o, m.runs(j))
			}
		}
		if store.taken() != 0 {
			t.Errorf("%d locks left", store.taken())
		}
		m.end()
	})
}
