package direct_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Whatever is submitted, ended, dropped, cancelled, tried again and expired, in whatever order, while connections break, go silent
// and come back: whoever waits is told the end of each task exactly once, and only what truly happened while it waited; nobody
// hangs, and nobody waits for longer than its deadline. Ten thousand random interleavings; DROVER_SEED=N repeats from one seed on,
// DROVER_INTERLEAVINGS=N makes it that many.
//
// There are three thousand in the short form.
func TestRandomInterleavings(t *testing.T) {
	t.Parallel()
	const shares = 2
	many, seed := number(t, "DROVER_INTERLEAVINGS", 3_000), number(t, "DROVER_SEED", int(rand.Int32()))
	t.Logf("seed %d", seed)
	for share := range shares {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i := share; i < many && !t.Failed(); i += shares {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, rand.New(rand.NewPCG(uint64(seed)+uint64(i), 0))) //nolint:gosec // repeatable
					for range 4 + w.random.IntN(16) {
						w.step()
					}
					w.finish()
				})
				if t.Failed() {
					t.Logf("repeat it with DROVER_SEED=%d DROVER_INTERLEAVINGS=1", seed+i)
				}
			}
		})
	}
}

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// step does one thing at random.
func (w *world) step() {
	w.t.Helper()
	s := w.tasks[w.random.IntN(len(w.tasks))]
	switch w.random.IntN(14) {
	case 0, 1:
		w.submit(s)
	case 2, 3:
		if s.state == living {
			ends := []task.State{task.Completed, task.Dead, task.Quarantined, task.Expired, task.Cancelled, task.Dropped}
			w.end(s, ends[w.random.IntN(len(ends))], w.random.IntN(3) > 0)
		}
	case 4:
		w.expire(s)
	case 5:
		w.again(s)
	case 6:
		w.cancel(s)
	case 7, 8, 9:
		w.wait()
	case 10:
		w.breakAll()
		w.note("every connection breaks")
	case 11:
		state := []wireState{cut, mute, frozen, sound, sound}[w.random.IntN(5)]
		w.become(state)
		w.note("the way becomes %d", state)
	case 12:
		pause := time.Duration(w.random.ExpFloat64() * float64(time.Second))
		w.note("%s pass", pause)
		time.Sleep(pause) //nolint:forbidigo // in a bubble
	default:
		w.note("everybody does what there is to do")
		w.settle()
	}
}

// submit submits through the manager's own way: whether the client's answer comes is not the question here.
func (w *world) submit(s *subject) {
	w.t.Helper()
	w.note("task %d is submitted", w.index(s))
	c := w.manager()
	submitted, err := c.Submit(w.t.Context(), modelQueue, s.payload)
	if err != nil {
		w.t.Fatalf("submit: %v", err)
	}
	_ = c.Close()
	s.id = submitted.ID
	if s.state != living {
		w.begin(s)
	}
}

// again tries a dead letter again, as the console does.
func (w *world) again(s *subject) {
	w.t.Helper()
	if s.state != buried {
		return
	}
	w.note("task %d is tried again", w.index(s))
	keys := task.KeysOf(modelQueue)
	w.atomically(func(p redis.Pipeliner) {
		p.ZRem(w.t.Context(), keys.Archived(), s.id.Key)
		p.Del(w.t.Context(), keys.Record(s.id.Key))
		p.HSet(w.t.Context(), keys.Task(s.id.Key), "state", task.AsynqPending)
		p.LPush(w.t.Context(), keys.Pending(), s.id.Key)
	})
	w.begin(s)
}

// cancel cancels a task through the client's library.
func (w *world) cancel(s *subject) {
	w.t.Helper()
	if s.state != living {
		return
	}
	before := w.note("task %d is cancelled", w.index(s))
	c := w.manager()
	defer func() { _ = c.Close() }()
	if state, err := c.Cancel(w.t.Context(), s.id); err != nil || state != task.Cancelled {
		w.t.Fatalf("cancel gave %s, %v", state, err)
	}
	w.ended(s, before, end{state: task.Cancelled, recorded: true})
}

// end ends a task as a manager does, with its record or without.
func (w *world) end(s *subject, state task.State, recorded bool) {
	w.t.Helper()
	before := w.note("task %d ends as %s, recorded %t", w.index(s), state, recorded)
	token := strconv.Itoa(before)
	record := &task.Task{ID: s.id, State: state, Attempts: 1, Manager: "model"}
	if state == task.Completed {
		record.Result = []byte(token)
	} else {
		record.Fault = fault.New(fault.Failed, "%s", token)
	}
	encoded, err := task.EncodeRecord(record)
	if err != nil {
		w.t.Fatal(err)
	}
	event, err := task.EncodeEvents(&task.Event{ID: s.id, State: state, At: time.Now(), Attempts: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, keys, key := w.t.Context(), task.KeysOf(modelQueue), s.id.Key
	bury := state == task.Dead || state == task.Quarantined || state == task.Expired
	w.atomically(func(p redis.Pipeliner) {
		p.LRem(ctx, keys.Pending(), 0, key)
		if bury {
			p.ZAdd(ctx, keys.Archived(), redis.Z{Score: float64(time.Now().Unix()), Member: key})
			p.HSet(ctx, keys.Task(key), "state", task.AsynqArchived, task.FieldEnd, state.String())
		} else {
			p.Del(ctx, keys.Task(key))
		}
		if recorded {
			p.Set(ctx, keys.Record(key), encoded, time.Hour)
		}
		p.Publish(ctx, keys.EventsChannel(), event)
	})
	w.ended(s, before, end{state: state, recorded: recorded || bury, buried: bury, token: token})
}

// expire lets the record of a task run out.
func (w *world) expire(s *subject) {
	w.t.Helper()
	if s.state != kept && s.state != buried {
		return
	}
	w.note("the record of task %d expires", w.index(s))
	w.atomically(func(p redis.Pipeliner) { p.Del(w.t.Context(), task.KeysOf(modelQueue).Record(s.id.Key)) })
	if s.state == kept {
		w.forget(s)
	}
}

// wait lets somebody wait for some of the tasks: in a list, for one, with a deadline, slowly, with events.
func (w *world) wait() {
	var ids []task.ID
	for _, s := range w.tasks {
		if !s.id.IsZero() && w.random.IntN(3) > 0 {
			ids = append(ids, s.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	r := &waiter{number: len(w.waiters), ids: ids, cancel: cancel, got: map[task.ID]answer{}, owed: map[task.ID]bool{}, free: time.Now()}
	if w.random.IntN(4) == 0 {
		r.limit = time.Duration(1+w.random.IntN(8000)) * time.Millisecond
		ctx, cancel = context.WithTimeout(ctx, r.limit)
		r.cancel = cancel
	}
	if w.random.IntN(3) == 0 {
		r.slow = time.Duration(w.random.IntN(int(slowest)))
	}
	var options []client.FollowOption
	if w.random.IntN(2) == 0 {
		options = append(options, client.WithEvents())
	}
	r.since, r.began = w.note("waiter %d waits for %v, at most %s, slow %s", r.number, w.numbers(ids), r.limit, r.slow), time.Now()
	w.mu.Lock()
	w.waiters = append(w.waiters, r)
	w.mu.Unlock()
	w.running.Go(func() { w.follow(ctx, r, options) })
}

// follow is what a waiter does.
func (w *world) follow(ctx context.Context, r *waiter, options []client.FollowOption) {
	defer r.cancel()
	for u, err := range w.client.Subscribe(ctx, r.ids, options...) {
		w.mu.Lock()
		w.clock++
		switch {
		case err != nil:
			r.err = err
		case u.Event == nil:
			if _, twice := r.got[u.ID]; twice {
				w.failed("waiter %d was told the end of %s twice", r.number, u.ID)
			}
			r.got[u.ID] = answer{at: w.clock, when: time.Now(), ready: later(r.free, w.soundAt), owed: r.owed[u.ID], update: u}
		}
		w.mu.Unlock()
		if r.slow > 0 && err == nil {
			time.Sleep(r.slow) //nolint:forbidigo // in a bubble
			w.mu.Lock()
			r.free = time.Now()
			w.mu.Unlock()
		}
	}
	w.mu.Lock()
	r.over, r.took = true, time.Since(r.began)
	w.mu.Unlock()
	if r.err == nil && len(r.got) != len(r.ids) {
		w.failed("waiter %d was told of %d of its %d tasks", r.number, len(r.got), len(r.ids))
	}
	if r.limit > 0 && r.took > r.limit+r.slow {
		w.failed("waiter %d waited %s, and its deadline was %s", r.number, r.took, r.limit)
	}
	if r.err != nil && !errors.Is(r.err, client.ErrUnavailable) && (r.limit == 0 || !errors.Is(r.err, context.DeadlineExceeded)) {
		w.failed("waiter %d: %v", r.number, r.err)
	}
}
