package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/task"
)

// memory is a store in this process, by the clock of the test's bubble, that can be made slow, silent and forgetful.
type memory struct {
	mu    sync.Mutex
	locks map[string]memoryLock
	away  bool
	calls int
	// slow is how long a call takes before it is carried out, and how long until its answer is there; nil is no time.
	slow func() (before, after time.Duration)
}

type memoryLock struct {
	token  lock.Token
	holder lock.Holder
	until  time.Time
}

var _ lock.Store = (*memory)(nil)

func newMemory() *memory { return &memory{locks: map[string]memoryLock{}} }

// do carries out a call.
func (m *memory) do(call func()) error {
	var before, after time.Duration
	m.mu.Lock()
	m.calls++
	if m.slow != nil {
		before, after = m.slow()
	}
	m.mu.Unlock()
	time.Sleep(before) //nolint:forbidigo // by the clock of the bubble
	m.mu.Lock()
	away := m.away
	if !away {
		call()
	}
	m.mu.Unlock()
	time.Sleep(after) //nolint:forbidigo // by the clock of the bubble
	if away {
		return errStore
	}
	return nil
}

func (m *memory) Acquire(_ context.Context, k lock.Key, token lock.Token, life time.Duration, h lock.Holder) (held bool, current lock.Holder, err error) {
	err = m.do(func() {
		has, ok := m.locks[k.String()]
		if ok && time.Now().Before(has.until) && has.token != token {
			current = has.holder
			return
		}
		m.locks[k.String()] = memoryLock{token: token, holder: h, until: time.Now().Add(life)}
		held, current = true, h
	})
	return held, current, err
}

func (m *memory) Renew(_ context.Context, leases []lock.Lease, life time.Duration) []lock.Renewal {
	results := make([]lock.Renewal, len(leases))
	err := m.do(func() {
		for i, l := range leases {
			has := m.locks[l.Key.String()]
			if results[i].Still = has.token == l.Token && time.Now().Before(has.until); results[i].Still {
				has.until = time.Now().Add(life)
				m.locks[l.Key.String()] = has
			}
		}
	})
	for i := range results {
		results[i].Err = err
	}
	return results
}

func (m *memory) Release(_ context.Context, k lock.Key, token lock.Token) error {
	return m.do(func() {
		if m.locks[k.String()].token == token {
			delete(m.locks, k.String())
		}
	})
}

// set changes the store.
func (m *memory) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// count is how many calls there were.
func (m *memory) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// taken is how many locks there are now.
func (m *memory) taken() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, l := range m.locks {
		if time.Now().Before(l.until) {
			n++
		}
	}
	return n
}

// ends tells of the ends of tasks.
type ends struct {
	mu    sync.Mutex
	told  map[task.ID]*task.Task
	more  chan struct{} // closed at the next one
	fails bool
}

func newEnds() *ends { return &ends{told: map[task.ID]*task.Task{}, more: make(chan struct{})} }

func (e *ends) Wait(ctx context.Context, id task.ID) (*task.Task, error) {
	for {
		e.mu.Lock()
		t, fails, more := e.told[id], e.fails, e.more
		e.mu.Unlock()
		if fails {
			return nil, errors.New("cannot be told")
		}
		if t != nil {
			return t, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-more:
		}
	}
}

// tell tells of an end.
func (e *ends) tell(t *task.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t.Ended.IsZero() {
		t.Ended = time.Now()
	}
	e.told[t.ID] = t
	close(e.more)
	e.more = make(chan struct{})
}

// manager is a locker with two queues of one plugin, and what its neighbours were asked for.
type manager struct {
	t      *testing.T
	locker *lock.Locker
	feeds  *lock.Queue
	system *lock.Queue
	end    func() // ends Run and waits for it

	mu          sync.Mutex
	policy      settings.LockPolicy
	missing     settings.LockMissing
	offered     []*job.Job
	cancelled   []*job.Job
	interrupted []*job.Job
	ended       []*job.Job
	outcomes    map[*job.Job]job.Outcome
	room        int
}

const poolCapacity = 10

func newManager(t *testing.T, name string, store lock.Store, waiter lock.Waiter) *manager {
	t.Helper()
	return newManagerFor(t, name, store, waiter, lock.DefaultLease)
}

func newManagerFor(t *testing.T, name string, store lock.Store, waiter lock.Waiter, lease time.Duration) *manager {
	t.Helper()
	m := &manager{t: t, policy: settings.LockJoin, missing: settings.LockMissingWait, outcomes: map[*job.Job]job.Outcome{}}
	m.locker = lock.New(lock.Deps{Store: store, Waiter: waiter, Ender: m, Manager: name, Lease: lease, Log: slog.New(slog.DiscardHandler)})
	queue := func(name string) *lock.Queue {
		return m.locker.Queue(lock.QueueDeps{
			Queue: name, Next: (*pool)(m), Fields: func() []string { return []string{"url"} },
			Settings: func() settings.Queue {
				m.mu.Lock()
				defer m.mu.Unlock()
				return settings.Queue{LockPolicy: m.policy, LockMissing: m.missing, RetryBackoff: 5 * time.Second}
			},
			Room: func() { m.mu.Lock(); defer m.mu.Unlock(); m.room++ },
		})
	}
	m.feeds, m.system = queue("feeds"), queue("system")
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- m.locker.Run(ctx) }()
	m.end = func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
	return m
}

// End is the controller's part, with the call of Ended that the wiring adds.
func (m *manager) End(j *job.Job, o job.Outcome) {
	m.mu.Lock()
	if _, twice := m.outcomes[j]; twice {
		m.t.Errorf("%s was ended twice", j.ID)
	}
	m.outcomes[j] = o
	m.ended = append(m.ended, j)
	m.mu.Unlock()
	m.locker.Ended(j)
}

// finish is the end of a job's run in the pool.
func (m *manager) finish(j *job.Job) {
	m.End(j, job.Outcome{End: job.Succeeded, Result: []byte(`{"by":"run"}`), Ended: time.Now()})
}

// pool is the manager as the stage behind the locks.
type pool manager

func (p *pool) Capacity() int { return poolCapacity }

func (p *pool) Offer(j *job.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offered = append(p.offered, j)
}

func (p *pool) Cancel(j *job.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancelled = append(p.cancelled, j)
}

func (p *pool) Interrupt(j *job.Job, _ time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interrupted = append(p.interrupted, j)
}

// all returns a list as it is now.
func (m *manager) all(list *[]*job.Job) []*job.Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(*list)
}

func (m *manager) has(list *[]*job.Job, j *job.Job) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(*list, j)
}

func (m *manager) runs(j *job.Job) bool        { return m.has(&m.offered, j) }
func (m *manager) isLost(j *job.Job) bool      { return m.has(&m.interrupted, j) }
func (m *manager) isCancelled(j *job.Job) bool { return m.has(&m.cancelled, j) }

// outcome is how a job was ended; its End is 0 when it was not.
func (m *manager) outcome(j *job.Job) job.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.outcomes[j]
}

func (m *manager) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// newJob returns a job of a queue about an address; its task is named by key.
func newJob(queue, key, url string) *job.Job {
	return job.New(task.ID{Queue: queue, Key: key}, "pull", []byte(`{"url":"`+url+`"}`))
}

// inBubble runs a test by a clock of its own with one manager.
func inBubble(t *testing.T, test func(t *testing.T, m *manager, store *memory, e *ends)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store, e := newMemory(), newEnds()
		test(t, newManager(t, "m1", store, e), store, e)
	})
}

// after lets time go by, and waits until everything that it brings is done.
func after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // by the clock of the bubble
	synctest.Wait()
}
