package intake

import (
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// held is a task that the lane has taken from Redis and not yet settled.
type held struct {
	key      string
	holder   string // token of the call that took it
	encoded  string // asynq's message as it lay in Redis
	message  *task.Message
	counters task.Counters
	pending  time.Time
	received time.Time
	job      *job.Job // nil until asynq has handed it to the handler
}

// hand is what a lane holds. It knows which tasks are settled, so that what asynq does for them afterwards can be answered
// without a call.
type hand struct {
	mu      sync.Mutex
	tasks   map[string]*held
	settled map[string]struct{}
	count   int // every task taken and not yet let go, also one that asynq gave up and that was taken anew
}

func newHand() *hand {
	return &hand{tasks: map[string]*held{}, settled: map[string]struct{}{}}
}

func (h *hand) add(tasks []*held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count += len(tasks)
	for _, t := range tasks {
		h.tasks[t.key] = t
		delete(h.settled, t.key)
	}
}

func (h *hand) get(key string) *held {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tasks[key]
}

// bind makes j the job of a held task.
func (h *hand) bind(t *held, j *job.Job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.job = j
}

// job returns the job of a held task; nil when there is none.
func (h *hand) jobOf(key string) *job.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.tasks[key]; t != nil {
		return t.job
	}
	return nil
}

// settle marks a task as settled: asynq's own answer for it will be swallowed.
func (h *hand) settle(t *held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tasks[t.key] == t {
		h.settled[t.key] = struct{}{}
	}
}

// release lets a task go. It reports how many are left.
func (h *hand) release(t *held) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count--
	if h.tasks[t.key] == t {
		delete(h.tasks, t.key)
	}
	return h.count
}

// answered reports whether a task was settled, once.
func (h *hand) answered(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.settled[key]
	delete(h.settled, key)
	return ok
}

func (h *hand) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// fieldsPerTask is the stride of dequeue.lua's answer.
const fieldsPerTask = 7

// readHeld reads dequeue.lua's answer for a queue. Tasks whose message asynq would not hand over are apart: those that
// cannot be read, and those that name another task than the one they lie under.
func readHeld(queue, holder string, values []string, now time.Time) (tasks, unreadable []*held) {
	for ; len(values) >= fieldsPerTask; values = values[fieldsPerTask:] {
		t := &held{key: values[0], holder: holder, encoded: values[1], received: now, pending: now}
		if ns, err := strconv.ParseInt(values[2], 10, 64); err == nil {
			t.pending = time.Unix(0, ns)
		}
		t.counters = task.Counters{Failures: number(values[3]), Kills: number(values[4]), Interruptions: number(values[5]), Losses: number(values[6])}
		m, err := task.DecodeMessage([]byte(t.encoded))
		if err != nil || m.Key != t.key || m.Queue != queue || !utf8.ValidString(m.Kind+m.Key+m.ErrorMsg+m.UniqueKey) {
			unreadable = append(unreadable, t)
			continue
		}
		t.message = m
		tasks = append(tasks, t)
	}
	return tasks, unreadable
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
