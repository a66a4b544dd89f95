package intake

import (
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// held is a task that the lane has taken from Redis and not yet settled.
type held struct {
	number   uint64 // of this run in the lane; by it asynq's handler finds it
	key      string
	holder   string        // token of the call that took it
	place    string        // its place among those that are given back: see settle.lua
	encoded  string        // asynq's message as it lay in Redis
	message  *task.Message // nil when it cannot be read
	counters task.Counters
	suspect  bool
	history  []task.Attempt
	pending  time.Time
	received time.Time
	// before is closed when an earlier run of the same task has been let go; nil when there is none.
	before <-chan struct{}
	// gone is closed when its verdict has been carried out or given up.
	gone chan struct{}

	job *job.Job

	// The hand guards these.
	offered   bool // the job has been handed down
	cancelled bool // somebody asked for that
	attended  bool // somebody waits for its verdict
	expired   bool // its run was stopped because its lease had run out
}

// hand is what a lane holds.
type hand struct {
	mu     sync.Mutex
	byKey  map[string]*held // the latest of each key
	runs   map[uint64]*held
	number uint64
}

func newHand() *hand { return &hand{byKey: map[string]*held{}, runs: map[uint64]*held{}} }

func (h *hand) add(tasks ...*held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range tasks {
		h.number++
		t.number, t.gone = h.number, make(chan struct{})
		if earlier := h.byKey[t.key]; earlier != nil {
			t.before = earlier.gone
		}
		h.byKey[t.key] = t
		h.runs[t.number] = t
	}
}

// run returns the held task of a number; nil when it has been let go.
func (h *hand) run(number uint64) *held {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[number]
}

// holds reports whether a task is held.
func (h *hand) holds(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byKey[key] != nil
}

// handedDown notes that a task's job has been offered. It reports whether it was to be cancelled before.
func (h *hand) handedDown(t *held) (cancelled bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.offered = true
	return t.cancelled
}

// cancel returns the task that is to be cancelled. It is nil when the task is not held, or not handed down: handedDown will say it.
func (h *hand) cancel(key string) *held {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.byKey[key]
	if t == nil {
		return nil
	}
	t.cancelled = true
	if !t.offered {
		return nil
	}
	return t
}

// expire notes that the run of a task is stopped because its lease has run out.
func (h *hand) expire(t *held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.expired = !t.cancelled
}

// hasExpired reports whether that was noted.
func (h *hand) hasExpired(t *held) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.expired
}

// attend makes the caller the one who waits for a task's verdict; false when there is one.
func (h *hand) attend(t *held) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := t.attended
	t.attended = true
	return !was
}

// unattended returns the latest run of a task when nobody waits for its verdict; else nil.
func (h *hand) unattended(key string) *held {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.byKey[key]; t != nil && !t.attended {
		return t
	}
	return nil
}

// release lets a task go.
func (h *hand) release(t *held) {
	h.mu.Lock()
	delete(h.runs, t.number)
	if h.byKey[t.key] == t {
		delete(h.byKey, t.key)
	}
	h.mu.Unlock()
	close(t.gone)
}

// size counts every run, also one whose task was taken away and that has not ended yet.
func (h *hand) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.runs)
}

// all returns what is held.
func (h *hand) all() []*held {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*held, 0, len(h.runs))
	for _, t := range h.runs {
		all = append(all, t)
	}
	return all
}
