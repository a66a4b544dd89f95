package intake

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// fieldsPerTask is the stride of dequeue.lua's answer.
const fieldsPerTask = 10

// readHeld reads dequeue.lua's answer for a queue. Tasks whose message cannot be read, or names another task than the one
// it lies under, have no message.
func readHeld(queue, holder string, values []string, now time.Time) []*held {
	tasks := make([]*held, 0, len(values)/fieldsPerTask)
	for ; len(values) >= fieldsPerTask; values = values[fieldsPerTask:] {
		t := &held{key: values[0], holder: holder, encoded: values[1], received: now, pending: now, place: values[7], suspect: values[8] == "1"}
		if t.place == "" {
			t.place = strconv.FormatInt(now.UnixNano()+int64(len(tasks)), 10) // of 19 digits until the year 2286
		}
		if values[2] != "" {
			if ns, err := strconv.ParseInt(values[2], 10, 64); err == nil {
				t.pending = time.Unix(0, ns)
			}
		}
		t.counters = task.Counters{Failures: number(values[3]), Kills: number(values[4]), Interruptions: number(values[5]), Losses: number(values[6])}
		t.history, _ = task.DecodeHistory([]byte(values[9])) // one that cannot be read is none
		m, err := task.DecodeMessage([]byte(t.encoded))
		if err == nil && m.Key == t.key && m.Queue == queue && utf8.ValidString(m.Kind) && utf8.ValidString(m.Key) {
			t.message = m
		}
		tasks = append(tasks, t)
	}
	return tasks
}

func number(s string) int {
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// forAsynq is the message that asynq gets to see: the task's name, with the number of the run as its payload, and nothing
// by which asynq would end or keep it on its own account. asynq copies payloads into Redis with every heartbeat; this one is short.
func (t *held) forAsynq() string {
	m := task.Message{
		Kind: t.message.Kind, Key: t.key, Queue: t.message.Queue, MaxRetry: math.MaxInt32, Timeout: neverSeconds,
		Payload: strconv.AppendUint(nil, t.number, 10),
	}
	return string(m.Encode())
}

// neverSeconds is a timeout that means none: what Drover's own clients ask for (ten years).
const neverSeconds = int64(10 * 365 * 24 * time.Hour / time.Second)

// job makes the job of a held task.
func (t *held) newJob(queue string) *job.Job {
	id := task.ID{Queue: queue, Key: t.key}
	j := job.New(id, "", nil)
	if t.message != nil {
		j = job.New(id, t.message.Kind, t.message.Payload)
		j.Submitted = t.message.Submitted()
		j.Deadline, j.Timeout = t.limits()
		if d, said := t.message.RecordKept(); said {
			j.KeepRecord = &d
		}
	}
	j.Counters, j.Suspect, j.Pending, j.Received = t.counters, t.suspect, t.pending, t.received
	j.History = t.history
	return j
}

// limits are when the task must have ended and how long a run may take by the client's wish, as asynq would reckon it; zero for none.
func (t *held) limits() (deadline time.Time, timeout time.Duration) {
	if s := t.message.Timeout; s > 0 && s < neverSeconds {
		timeout = time.Duration(s) * time.Second
	}
	if s := t.message.Deadline; s > 0 {
		deadline = time.Unix(s, 0)
	}
	return deadline, timeout
}
