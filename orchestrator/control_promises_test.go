package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// at submits work of the queue "noop" at a rate until stop is called, and says of which tasks.
type at struct {
	stop  func() []task.ID
	began time.Time
}

// submitting submits so many tasks a second, in a batch every hundredth of one.
func submitting(t *testing.T, c client.Client, perSecond int) at {
	t.Helper()
	const every = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var ids []task.ID
	var running sync.WaitGroup
	began := time.Now()
	running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				due := int(time.Since(began).Seconds()*float64(perSecond)) - len(ids)
				ids = append(ids, noops(t, c, due)...)
			}
		}
	})
	return at{began: began, stop: func() []task.ID {
		cancel()
		running.Wait()
		return ids
	}}
}

// noops submits so many tasks to the queue "noop".
func noops(t *testing.T, c client.Client, n int) []task.ID {
	work := make([]client.Work, max(0, n))
	for i := range work {
		work[i] = client.Work{Queue: "noop", Payload: map[string]any{}, Options: []client.Option{client.Unique(false)}}
	}
	batch, err := c.SubmitBatch(t.Context(), work)
	if err != nil {
		t.Errorf("submit: %v", err)
	}
	var ids []task.ID
	for _, b := range batch {
		if b.Err != nil {
			t.Errorf("submit: %v", b.Err)
			continue
		}
		ids = append(ids, b.ID)
	}
	return ids
}

// While 2,000 tasks a second are submitted, more workers are on their way within 100 ms of being asked for, and no task is lost or pays for it.
func TestMoreWorkersUnderLoad(t *testing.T) {
	t.Parallel()
	const perSecond, backlog, tries, bound = 2000, 2000, 6, 100 * time.Millisecond
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "").start()
	c, control := straight(t, r), m.control(t)
	set := func(changes ...*apiv1.SettingChange) {
		t.Helper()
		if _, err := control.ChangeSettings(t.Context(), &apiv1.ChangeSettingsRequest{Who: "test", Changes: changes}); err != nil {
			t.Fatal(err)
		}
	}
	workers := func(n string) *apiv1.SettingChange {
		return &apiv1.SettingChange{Queue: "noop", Name: "max_workers", Value: n}
	}
	// So many tasks are taken beforehand that more workers are worth their start.
	set(workers("1"), &apiv1.SettingChange{Queue: "noop", Name: "slots", Value: "1"}, &apiv1.SettingChange{Queue: "noop", Name: "buffer", Value: "1000"})
	load := submitting(t, c, perSecond)
	completed := func(n uint64) {
		t.Helper()
		eventually(t, "tasks are done", func() error {
			if done := m.queue(t, "noop").GetCompleted(); done < n {
				return fmt.Errorf("%d are", done)
			}
			return nil
		})
	}
	completed(perSecond) // it has been going on for a second
	var ids []task.ID
	best := time.Hour
	for try := 0; try < tries && best > bound; try++ { // a machine that does other things is not slow each time
		ids = append(ids, noops(t, c, backlog)...) // one worker has more than it can do
		eventually(t, "one worker works", func() error {
			if q := m.queue(t, "noop"); q.GetWorkers() != 1 || q.GetRunning() == 0 || q.GetHeld() < 500 {
				return fmt.Errorf("%d workers, %d run, %d held", q.GetWorkers(), q.GetRunning(), q.GetHeld())
			}
			return nil
		})
		asked := time.Now()
		set(workers("8"))
		answered := time.Since(asked)
		for m.queue(t, "noop").GetWorkers() == 1 { // those that are being started are counted
			if time.Since(asked) > patience {
				t.Fatal("no worker was started")
			}
		}
		acted := time.Since(asked)
		eventually(t, "more workers are ready", func() error {
			if ready := len(m.workers(t, "noop")); ready < 2 {
				return fmt.Errorf("%d are", ready)
			}
			return nil
		})
		best = min(best, acted)
		const fine = 100 * time.Microsecond
		t.Logf("try %d: answered after %s, workers started after %s, the first ready after %s", try+1, answered.Round(fine), acted.Round(fine), time.Since(asked).Round(fine))
		set(workers("1"))
	}
	if best > bound {
		t.Errorf("at best it took %s, longer than %s", best, bound)
	}
	set(workers("8"))
	completed(uint64(len(ids)) + 2*perSecond)
	ids = append(ids, load.stop()...)
	t.Logf("%d tasks in %s", len(ids), time.Since(load.began).Round(time.Millisecond))
	for _, ended := range waitFor(t, c, ids...) {
		if ended.State != task.Completed || ended.Counters != (task.Counters{}) {
			t.Errorf("%s: %s, %+v", ended.ID, ended.State, ended.Counters)
		}
	}
	if q := m.queue(t, "noop"); q.GetRunP99Us() == 0 || q.GetWaitP99Us() == 0 || q.GetRunP50Us() > q.GetRunP99Us() || q.GetWaitP50Us() > q.GetWaitP99Us() {
		t.Errorf("run time %d, %d us, wait %d, %d us", q.GetRunP50Us(), q.GetRunP99Us(), q.GetWaitP50Us(), q.GetWaitP99Us())
	}
	m.stop()
}

// The status is there within 50 ms also while Redis stands still or has ended, and says so.
func TestStatusWithoutRedis(t *testing.T) {
	t.Parallel()
	const bound, tries = 50 * time.Millisecond, 20
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "").start()
	control := m.control(t)
	quickly := func(what string) {
		t.Helper()
		var all []time.Duration
		for range tries {
			began := time.Now()
			s, err := control.Status(t.Context(), &apiv1.StatusRequest{})
			all = append(all, time.Since(began))
			if err != nil || s.GetManager().GetBrokerError() == "" || len(s.GetQueues()) != 2 {
				t.Fatalf("%s: %v, %v", what, s.GetManager(), err)
			}
		}
		slices.Sort(all)
		t.Logf("%s: best %s, median %s, worst %s", what, all[0], all[tries/2], all[tries-1])
		if all[0] > bound { // the best: a busy machine may have been slow at times
			t.Errorf("%s: at best it took %s", what, all[0])
		}
	}
	quick := func() error {
		s, err := control.Status(t.Context(), &apiv1.StatusRequest{})
		if err == nil && s.GetManager().GetBrokerError() != "" {
			err = errors.New(s.GetManager().GetBrokerError())
		}
		return err
	}
	eventually(t, "Redis answers", quick)
	r.Freeze()
	quickly("Redis stands still")
	r.Thaw()
	eventually(t, "Redis answers again", quick)
	r.Stop()
	quickly("Redis has ended")
	r.Start()
	eventually(t, "Redis is back", quick)
	m.stop()
}

// One worker is replaced by its number: a new one starts first, the old one finishes what it does, and the others stay, also where the queue
// has as many as it may have.
func TestRestartOfOneWorker(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 2, min_workers: 2, slots: 1").start()
	c, control := m.connect(t), m.control(t)
	eventually(t, "two workers", func() error {
		if n := len(m.workers(t, "misbehave")); n != 2 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	id := submitTo(t, c, map[string]any{"do": "sleep", "ms": 1500, "value": 1})
	var busy, idle *apiv1.Worker
	eventually(t, "one is busy", func() error {
		for _, w := range m.workers(t, "misbehave") {
			switch {
			case w.GetRunning() == 1:
				busy = w
			default:
				idle = w
			}
		}
		if busy == nil || idle == nil {
			return errors.New("none is")
		}
		return nil
	})
	answer, err := control.Restart(t.Context(), &apiv1.RestartRequest{Worker: busy.GetId()})
	if err != nil || answer.GetWorkers() != 1 {
		t.Fatalf("%v, %v", answer, err)
	}
	eventually(t, "it is replaced", func() error {
		workers := m.workers(t, "misbehave")
		has := func(id uint64) bool {
			return slices.ContainsFunc(workers, func(w *apiv1.Worker) bool { return w.GetId() == id })
		}
		staying := slices.DeleteFunc(slices.Clone(workers), func(w *apiv1.Worker) bool { return w.GetLeaving() != "" })
		if len(staying) < 2 || !has(idle.GetId()) {
			t.Errorf("in between there were %v", workers)
		}
		if has(busy.GetId()) {
			return errors.New("it is still there")
		}
		return nil
	})
	if ended := waitFor(t, c, id)[0]; ended.State != task.Completed || ended.Attempts != 1 {
		t.Errorf("its task: %s, %d runs", ended.State, ended.Attempts)
	}
	if after := m.workers(t, "misbehave"); len(after) != 2 || !slices.ContainsFunc(after, func(w *apiv1.Worker) bool { return w.GetId() > idle.GetId() && w.GetId() > busy.GetId() }) {
		t.Errorf("afterwards there are %v", after)
	}
	m.stop()
}
