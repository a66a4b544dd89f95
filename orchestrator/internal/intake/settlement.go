package intake

import (
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// The moves of settle.lua.
const (
	moveDone     = "d"
	moveKept     = "k"
	moveRetry    = "r"
	moveBury     = "b"
	moveGiveBack = "g"
	moveDefer    = "s"
)

// settlement is a verdict in the form in which settle.lua takes it.
type settlement struct {
	task                   *held
	verdict                job.Verdict
	move                   string
	message, record, event []byte
	history                []byte
	result                 []byte
	hook                   []byte
	score                  int64 // Unix second: when a retry is due, or until when asynq keeps a finished task
	unique                 string
}

func newSettlement(t *held, v job.Verdict, now time.Time) *settlement {
	c := &settlement{task: t, verdict: v}
	switch v.Move {
	case job.Finish:
		c.finish(now)
	case job.Retry:
		c.move, c.message = moveRetry, c.failedMessage(now)
		c.score = v.RetryAt.Add(time.Second - 1).Unix() // rounded up: asynq's clock has whole seconds
	case job.Bury:
		c.move, c.message = moveBury, c.failedMessage(now)
		if v.Hook != nil {
			c.hook = orNothing(json.Marshal(v.Hook))
		}
	case job.GiveBack:
		c.move = moveGiveBack
	case job.Defer:
		c.move, c.score = moveDefer, v.RetryAt.Add(time.Second-1).Unix()
	}
	if v.Move != job.Finish {
		c.history = orNothing(task.EncodeHistory(v.History))
	}
	if v.Record != nil && v.KeepFor >= time.Second {
		c.record = orNothing(task.EncodeRecord(v.Record))
	}
	if v.Event != nil {
		c.event = orNothing(task.EncodeEvents(v.Event))
	}
	return c
}

// completedAt is the field of asynq's TaskMessage that says when the task was completed (Unix second).
const completedAt protowire.Number = 13

// finish fills in the end of a task. A task of a foreign client that asked for it is kept as asynq keeps it.
func (c *settlement) finish(now time.Time) {
	c.move = moveDone
	if c.task.message == nil {
		return
	}
	c.unique = c.task.message.UniqueKey
	keep := c.task.message.Retention
	if keep <= 0 || c.verdict.State != task.Completed {
		return
	}
	c.move, c.score = moveKept, now.Unix()+keep
	// Of a field that is there twice the last counts.
	c.message = protowire.AppendTag([]byte(c.task.encoded), completedAt, protowire.VarintType)
	c.message = protowire.AppendVarint(c.message, uint64(now.Unix())) //nolint:gosec // after 1970
	if c.verdict.Record != nil {
		c.result = c.verdict.Record.Result
	}
}

// failedMessage is asynq's message with the failure noted, as asynq itself would have; an unreadable one stays as it is.
func (c *settlement) failedMessage(now time.Time) []byte {
	if c.task.message == nil {
		return []byte(c.task.encoded)
	}
	m := *c.task.message
	if c.verdict.State != task.Expired { // that was no run
		m.Retried++
	}
	m.ErrorMsg = strings.ToValidUTF8(c.verdict.Reason, "\uFFFD")
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

// size is about how many bytes it carries.
func (c *settlement) size() int {
	return len(c.message) + len(c.record) + len(c.event) + len(c.result) + len(c.history) + len(c.hook)
}

// appendTo appends its values for settle.lua.
func (c *settlement) appendTo(args []any) []any {
	n := &c.verdict.Counters
	args = append(args, c.task.key, c.task.holder, c.move, c.record, int64(c.verdict.KeepFor/time.Second), c.event)
	switch c.move {
	case moveDone:
		return append(args, c.unique)
	case moveKept:
		return append(args, c.unique, c.message, c.result, c.score)
	case moveRetry:
		return append(args, n.Failures, n.Kills, n.Interruptions, n.Losses, c.history, c.message, c.score)
	case moveBury:
		return append(args, n.Failures, n.Kills, n.Interruptions, n.Losses, c.history, c.message, c.verdict.State.String(), c.hook)
	case moveDefer:
		return append(args, n.Failures, n.Kills, n.Interruptions, n.Losses, c.history, c.score, c.suspect())
	default:
		return append(args, n.Failures, n.Kills, n.Interruptions, n.Losses, c.history, c.task.place, c.suspect())
	}
}

// suspect is "1" for a task whose next run is one as a suspect.
func (c *settlement) suspect() string {
	if c.verdict.Suspect {
		return "1"
	}
	return ""
}
