package ledger

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	// DefaultLimit is how many tasks a page has when nothing is said.
	DefaultLimit = 100
	// MaxLimit is how many it has at most.
	MaxLimit = 1000

	lookBatch = 200      // tasks that one script looks at, at most
	lookBytes = 1 << 20  // of messages after which a script stops
	pageBytes = 8 << 20  // of messages after which a page ends
	maxLooked = 5 * 1000 // tasks that are looked at for one page, when a filter leaves most of them out
	maxEnds   = 20_000   // dead letters that are counted by their end; more are not
)

// Query says which tasks to list.
type Query struct {
	Queue string
	// State is Waiting (pending and scheduled ones), Held, Running (all that managers have taken), Failed, Dead (all dead letters,
	// quarantined and expired ones included), Quarantined or Expired.
	State task.State
	// Limit is from 0 to MaxLimit; 0 is DefaultLimit.
	Limit int
	// Token is that of the page before; empty for the first.
	Token string
	// Filter leaves only dead letters that fit.
	Filter Filter
	// Payloads asks for the payloads as well.
	Payloads bool
}

// Page is a part of a list. It may have fewer tasks than were asked for, even none, although there are more behind it.
type Page struct {
	Tasks []*task.Task
	// Next is the token of the next page; empty when this is the last.
	Next string
	// Total is how many there are in that state, -1 when that is not known. Pages after the first do not say.
	Total int64
}

// InvalidError says that a list cannot be asked for like that.
type InvalidError struct{ reason string }

func (e *InvalidError) Error() string { return e.reason }

func invalid(format string, args ...any) error {
	return &InvalidError{reason: fmt.Sprintf(format, args...)}
}

// unknown stands for a total that is not known.
const unknown = -1

// List returns one page of the tasks in a state: those that wait, or failed, in the order in which they will run; those that
// are taken, the longest taken first; dead letters, the latest first. While tasks come and go, a page begins after the last
// task of the page before; when that is gone, with what was behind it.
func (l *Ledger) List(ctx context.Context, q Query) (Page, error) {
	sources, err := sourcesOf(q)
	if err != nil {
		return Page{}, err
	}
	at, err := parseToken(q.Token, len(sources))
	if err != nil {
		return Page{}, err
	}
	page := Page{Total: unknown}
	if q.Token == "" {
		if page.Total, err = l.total(ctx, q, sources); err != nil {
			return Page{}, err
		}
	}
	limit := q.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	looked, bytes := 0, 0
	for at.source < len(sources) && len(page.Tasks) < limit && looked < maxLooked && bytes < pageBytes {
		seen, more, err := l.lookAt(ctx, q.Queue, sources[at.source], at, min(lookBatch, limit-len(page.Tasks)))
		if err != nil {
			return Page{}, err
		}
		looked += len(seen)
		for _, s := range seen {
			bytes += len(s.stored.Message)
			at.after, at.score = s.key, s.score
			if t := l.taskOf(s); t != nil && wanted(t, q) {
				if !q.Payloads {
					t.Payload = nil
				}
				page.Tasks = append(page.Tasks, t)
			}
		}
		if !more || len(seen) == 0 {
			at = token{source: at.source + 1}
		}
	}
	if at.source < len(sources) {
		page.Next = at.String()
	}
	return page, nil
}

// source is a list or a sorted set, and the way through it.
type source struct {
	key, how string
	state    string // asynq's, of the tasks in it
}

func sourcesOf(q Query) ([]source, error) {
	if q.Limit < 0 || q.Limit > MaxLimit {
		return nil, invalid("limit: %d is not between 0 and %d; go on with the page token for more", q.Limit, MaxLimit)
	}
	if !q.Filter.empty() && !buried(q.State) {
		return nil, invalid("filter: only dead letters are listed by what they died for, when, and with which message")
	}
	if err := q.Filter.validate(); err != nil {
		return nil, err
	}
	keys := task.KeysOf(q.Queue)
	switch q.State {
	case task.Waiting:
		return []source{{keys.Pending(), "tail", task.AsynqPending}, {keys.Scheduled(), "up", task.AsynqScheduled}}, nil
	case task.Held, task.Running:
		return []source{{keys.Active(), "tail", task.AsynqActive}}, nil
	case task.Failed:
		return []source{{keys.Retry(), "up", task.AsynqRetry}}, nil
	case task.Dead, task.Quarantined, task.Expired:
		return []source{{keys.Archived(), "down", task.AsynqArchived}}, nil
	case task.Completed, task.Cancelled, task.Dropped:
		return nil, invalid("%s tasks have left their queue and are not listed: of each there is a record for as long as retention says, which is found by the task's ID", q.State)
	default:
		return nil, invalid("state: say which tasks: waiting, held, running, failed, dead, quarantined or expired")
	}
}

// buried reports whether tasks in a state lie among the dead letters.
func buried(s task.State) bool { return s == task.Dead || s == task.Quarantined || s == task.Expired }

// wanted reports whether a task belongs on the list.
func wanted(t *task.Task, q Query) bool {
	switch q.State {
	case task.Held:
		return t.State == task.Held
	case task.Dead, task.Quarantined, task.Expired:
		return (q.State == task.Dead || t.State == q.State) && q.Filter.fits(t)
	default:
		return true
	}
}

// sighting is what a script saw of one task.
type sighting struct {
	id     task.ID
	key    string
	score  string
	stored task.Stored
}

// taskOf makes a task of a sighting; nil for one whose hash is gone or cannot be read, and for an ID that is none.
func (l *Ledger) taskOf(s sighting) *task.Task {
	if !sound(s.id) {
		return nil
	}
	t, _, err := s.stored.Read(s.id)
	if err != nil {
		// A message that nobody can read is a dead letter all the same.
		t = &task.Task{ID: s.id, State: task.StateOfAsynq(s.stored.State)}
		if t.State == task.Unknown {
			return nil
		}
		t.Fault = fault.New(fault.InvalidPayload, "its message in the queue cannot be read: it was not written by a client of Drover or asynq")
	}
	if t.State == task.Unknown {
		return nil
	}
	if at, err := strconv.ParseFloat(s.score, 64); err == nil && t.Ended.IsZero() && s.stored.State == task.AsynqArchived {
		t.Ended = time.Unix(int64(at), 0).UTC()
	}
	if t.State == task.Running && l.Known != nil {
		l.Known(t)
	}
	return t
}

// sound reports whether an ID can be written and read back.
func sound(id task.ID) bool {
	parsed, err := task.ParseID(id.String())
	return err == nil && parsed == id
}

const sightingFields = 13

// lookAt looks at the next tasks of a source and reports whether there are more behind them.
func (l *Ledger) lookAt(ctx context.Context, queue string, from source, at token, n int) (seen []sighting, more bool, err error) {
	const head = 2
	values, err := ask(ctx, l, func(ctx context.Context) ([]any, error) {
		return l.look.Run(ctx, l.Redis, []string{from.key}, task.KeysOf(queue).TaskPrefix(), from.how, at.after, at.score, n, lookBytes).Slice()
	})
	if err != nil {
		return nil, false, fmt.Errorf("list the tasks of queue %s: %w", queue, err)
	}
	if len(values) < head || (len(values)-head)%sightingFields != 0 {
		return nil, false, fmt.Errorf("list the tasks of queue %s: %w: the answer of Redis is not understood", queue, client.ErrUnavailable)
	}
	for v := values[head:]; len(v) > 0; v = v[sightingFields:] {
		s := sighting{key: text(v[0]), score: text(v[1]), stored: task.Stored{
			Message: text(v[2]), State: text(v[3]), PendingSince: text(v[4]), Failures: text(v[5]), Kills: text(v[6]),
			Interruptions: text(v[7]), Losses: text(v[8]), End: text(v[9]), Result: text(v[10]), History: text(v[11]), Progress: text(v[12]),
		}}
		s.id = task.ID{Queue: queue, Key: s.key}
		if from.how == "up" {
			s.stored.Due = s.score
		}
		seen = append(seen, s)
	}
	return seen, text(values[1]) == "1", nil
}

// total counts the tasks of a state.
func (l *Ledger) total(ctx context.Context, q Query, sources []source) (int64, error) {
	keys := task.KeysOf(q.Queue)
	switch {
	case q.State == task.Held || !q.Filter.empty():
		return unknown, nil
	case q.State == task.Quarantined || q.State == task.Expired:
		n, err := ask(ctx, l, func(ctx context.Context) (int64, error) {
			return l.ends.Run(ctx, l.Redis, []string{keys.Archived()}, keys.TaskPrefix(), maxEnds, q.State.String()).Int64()
		})
		if err != nil {
			return 0, fmt.Errorf("count the dead letters of queue %s: %w", q.Queue, err)
		}
		return n, nil
	}
	var sum int64
	for _, s := range sources {
		n, err := ask(ctx, l, func(ctx context.Context) (int64, error) {
			if s.how == "tail" {
				return l.Redis.LLen(ctx, s.key).Result()
			}
			return l.Redis.ZCard(ctx, s.key).Result()
		})
		if err != nil {
			return 0, fmt.Errorf("count the tasks of queue %s: %w", q.Queue, err)
		}
		sum += n
	}
	return sum, nil
}

func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	default:
		return ""
	}
}
