package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// waysEnd is one way in which a task ends.
type waysEnd struct {
	order   map[string]any
	options []client.Option
	// bring ends the task from outside, when it waits in a queue that is paused; running is when it must run first.
	bring   func(r *endRig, id task.ID) error
	running bool
	state   task.State // task.Unknown: nothing tells of it
	fault   fault.Kind
	// lasting is that there is something to be read after the end although no record was to be kept: a dead letter, or what a
	// client or the console leaves that ended it.
	lasting bool
}

func waysOfEnding() map[string]waysEnd {
	cancel := func(r *endRig, id task.ID) error {
		_, err := r.over["straight to Redis"].Cancel(r.t.Context(), id)
		return err
	}
	drop := func(r *endRig, id task.ID) error {
		changed, err := r.control.DropTasks(r.t.Context(), &apiv1.DropTasksRequest{Tasks: &apiv1.TaskSelection{Ids: []string{id.String()}}})
		if err == nil && changed.GetChanged() != 1 {
			err = fmt.Errorf("%v", changed)
		}
		return err
	}
	sleep := map[string]any{"do": "sleep", "ms": 60_000}
	return map[string]waysEnd{
		"completed":                 {order: map[string]any{"do": "return"}, state: task.Completed},
		"failed for good":           {order: map[string]any{"do": "permanent"}, state: task.Dead, fault: fault.Failed, lasting: true},
		"failed too often":          {order: map[string]any{"do": "fail"}, state: task.Dead, fault: fault.Failed, lasting: true},
		"quarantined":               {order: map[string]any{"do": "exit"}, state: task.Quarantined, fault: fault.Crash, lasting: true},
		"cancelled while it waited": {order: sleep, bring: cancel, state: task.Cancelled, fault: fault.Cancelled, lasting: true},
		"cancelled while it ran":    {order: sleep, bring: cancel, running: true, state: task.Cancelled, fault: fault.Cancelled},
		"dropped by the console":    {order: sleep, bring: drop, state: task.Dropped, lasting: true},
		"expired while it waited":   {order: sleep, options: []client.Option{client.Deadline(time.Now())}, state: task.Expired, fault: fault.Timeout, lasting: true},
		"expired while it ran":      {order: sleep, options: []client.Option{client.Deadline(time.Now().Add(8 * time.Second))}, state: task.Expired, fault: fault.Timeout, lasting: true},
		"skipped":                   {order: map[string]any{"do": "return", "lock": "taken"}, state: task.Completed, fault: fault.Skipped},
		"deleted by other tools":    {order: sleep, bring: (*endRig).erase, state: task.Unknown},
	}
}

// endRig is a manager whose queue is paused, and clients of both transports.
type endRig struct {
	t       *testing.T
	redis   *testenv.Redis
	control *client.ControlClient
	over    map[string]client.Client
}

// erase takes a waiting task away without a word, as asynq's own tools do.
func (r *endRig) erase(id task.ID) error {
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.Addr()})
	defer func() { _ = rdb.Close() }()
	keys := task.KeysOf(id.Queue)
	if err := rdb.LRem(r.t.Context(), keys.Pending(), 0, id.Key).Err(); err != nil {
		return err
	}
	return rdb.Del(r.t.Context(), keys.Task(id.Key)).Err()
}

// Every way in which a task ends wakes who waits for it, by both transports, whether a record is kept or not. Afterwards it can still
// be read, or is unknown at once when no record was to be kept: nobody hangs.
func TestEveryEndWakes(t *testing.T) {
	t.Parallel()
	r := &endRig{t: t, redis: testenv.StartRedis(t, testenv.RedisOptions{})}
	m := setUp(t, fmt.Sprintf("{address: %q}", r.redis.URL()), "",
		"max_workers: 8, slots: 1, buffer: 64, max_failures: 2, max_kills: 2, retry_backoff: 1s, lock_policy: skip").start()
	r.control = m.control(t)
	r.over = map[string]client.Client{"straight to Redis": straight(t, r.redis), "over the API": m.connect(t)}
	holder := submitTo(t, r.over["over the API"], map[string]any{"do": "sleep", "ms": 120_000, "lock": "taken"})
	eventually(t, "the lock is taken", runs(t, r.over["over the API"], holder))
	if _, err := r.control.Pause(t.Context(), &apiv1.PauseRequest{Queue: "misbehave"}); err != nil {
		t.Fatal(err)
	}

	var standing, told sync.WaitGroup
	tasks := map[task.ID]waysEnd{}
	for name, way := range waysOfEnding() {
		for _, recorded := range []bool{true, false} {
			options := append([]client.Option{client.Unique(false)}, way.options...)
			if !recorded {
				options = append(options, client.Retention(0))
			}
			id := submitTo(t, r.over["over the API"], way.order, options...)
			tasks[id] = way
			for transport, c := range r.over {
				standing.Add(1)
				told.Go(func() {
					what := fmt.Sprintf("%s, recorded %t, %s", name, recorded, transport)
					r.waitForEnd(c, id, way, what, sync.OnceFunc(standing.Done))
					r.readAfterEnd(c, id, way, what, recorded)
				})
			}
		}
	}
	standing.Wait()
	for id, way := range tasks {
		if way.bring != nil && !way.running {
			if err := way.bring(r, id); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := r.control.Resume(t.Context(), &apiv1.ResumeRequest{Queue: "misbehave"}); err != nil {
		t.Fatal(err)
	}
	for id, way := range tasks {
		if way.running {
			eventually(t, "it runs", runs(t, r.over["over the API"], id))
			if err := way.bring(r, id); err != nil {
				t.Error(err)
			}
		}
	}
	told.Wait()
}

// waitForEnd waits for a task, and calls stands when it would hear of its end: a task that never was is told in the same look.
func (r *endRig) waitForEnd(c client.Client, id task.ID, way waysEnd, what string, stands func()) {
	r.t.Helper()
	defer stands() // whatever went wrong
	never := task.RandomID(id.Queue)
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*patience)
	defer cancel()
	for u, err := range c.Subscribe(ctx, []task.ID{id, never}) {
		switch {
		case err != nil:
			r.t.Errorf("%s: %v", what, err)
			if errors.Is(err, context.DeadlineExceeded) {
				return
			}
		case u.ID == never:
			stands()
		case way.state == task.Unknown:
			if !u.Unknown {
				r.t.Errorf("%s: told %+v, want unknown", what, u)
			}
		case u.Ended == nil || u.Ended.State != way.state || kindOf(u.Ended) != way.fault:
			r.t.Errorf("%s: told %+v, %+v; want %s, %s", what, u, u.Ended, way.state, way.fault)
		}
	}
}

// readAfterEnd waits for a task that has ended, which must be answered at once.
func (r *endRig) readAfterEnd(c client.Client, id task.ID, way waysEnd, what string, recorded bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience/2)
	defer cancel()
	ended, err := client.Wait(ctx, c, id)
	if way.state != task.Unknown && (recorded || way.lasting) {
		if err != nil || ended.State != way.state {
			r.t.Errorf("%s: afterwards a wait gave %+v, %v; want %s", what, ended, err, way.state)
		}
		return
	}
	if !errors.Is(err, client.ErrUnknownTask) {
		r.t.Errorf("%s: afterwards a wait gave %+v, %v; want that it is unknown", what, ended, err)
	}
}

func kindOf(t *task.Task) fault.Kind {
	if t.Fault == nil {
		return fault.None
	}
	return t.Fault.Kind
}
