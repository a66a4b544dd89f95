package controller_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/controller"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// published is what a controller has published, by channel.
type published struct {
	redis.UniversalClient
	mu     sync.Mutex
	events map[string][]*task.Event
	times  []time.Time
}

// EvalSha takes the call of progress.lua, which the tests of package orchestrator run in a real Redis.
func (p *published) EvalSha(ctx context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events == nil {
		p.events = map[string][]*task.Event{}
	}
	channel, _ := args[1].(string)
	for i := 3; i < len(args); i += 2 {
		data, _ := args[i].([]byte)
		events, err := task.DecodeEvents(data)
		if err != nil {
			return redis.NewCmdResult(nil, err)
		}
		p.events[channel] = append(p.events[channel], events...)
	}
	p.times = append(p.times, time.Now())
	return redis.NewCmd(ctx)
}

func newController(p *published, log *bytes.Buffer) *controller.Controller {
	return controller.New(controller.Deps{
		Manager: "m1", Redis: p, Settings: func(string) settings.Queue { return limits() }, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
}

func taken(queue, key string) *job.Job {
	j := job.New(task.ID{Queue: queue, Key: key}, "kind", []byte(`{}`))
	j.Received = time.Now()
	j.Pending = j.Received.Add(-2 * time.Second)
	j.Submitted = j.Received.Add(-time.Minute)
	return j
}

// The record of an end has all that a client is shown, and the event goes with it.
func TestRecordIsComplete(t *testing.T) {
	t.Parallel()
	c := newController(&published{}, &bytes.Buffer{})
	j := taken("q", "k")
	j.Counters = task.Counters{Failures: 1, Interruptions: 2}
	started := j.Received.Add(time.Second)
	c.End(j, job.Outcome{End: job.Succeeded, Result: []byte(`{"a":1}`), Started: started, Ended: started.Add(3 * time.Second)})
	v := <-j.Verdict()
	r := v.Record
	if r == nil || v.KeepFor != time.Hour || r.ID != j.ID || r.Kind != "kind" || r.State != task.Completed || r.Attempts != 4 ||
		r.Counters != j.Counters || string(r.Result) != `{"a":1}` || r.Fault != nil || r.Manager != "m1" {
		t.Errorf("the record is %+v", r)
	}
	if r.Queued != 3*time.Second || r.Run != 3*time.Second || !r.Submitted.Equal(j.Submitted) || !r.Started.Equal(started) || !r.Ended.Equal(started.Add(3*time.Second)) {
		t.Errorf("its times are %+v", r)
	}
	if e := v.Event; e == nil || e.ID != j.ID || e.State != task.Completed || e.Attempts != 4 || !e.At.Equal(r.Ended) || e.Fault != fault.None {
		t.Errorf("the event is %+v", e)
	}
}

// Ends that are no end of the task have no record; those that a client wants to hear of have an event, a return has none.
func TestWhatIsToldOfWhichEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome       job.Outcome
		record, event bool
		attempts      int
		kind          fault.Kind
	}{
		"returned":             {job.Outcome{End: job.Returned}, false, false, 0, fault.None},
		"interrupted":          {job.Outcome{End: job.Interrupted}, false, true, 1, fault.None},
		"failed":               {job.Outcome{End: job.Faulted, Fault: fault.New(fault.Unreachable, "x")}, false, true, 1, fault.Unreachable},
		"failed without a why": {job.Outcome{End: job.Faulted}, false, true, 1, fault.Failed},
		"refused":              {job.Outcome{End: job.Faulted, Fault: fault.New(fault.InvalidPayload, "x").AsPermanent()}, true, true, 1, fault.InvalidPayload},
		"killed":               {job.Outcome{End: job.Killed, Fault: fault.New(fault.Crash, "x")}, false, true, 1, fault.Crash},
		"cancelled in line":    {job.Outcome{End: job.Cancelled, Fault: fault.New(fault.Cancelled, "x")}, true, true, 0, fault.Cancelled},
		"cancelled":            {job.Outcome{End: job.Cancelled, Started: time.Now(), Fault: fault.New(fault.Cancelled, "x")}, true, true, 1, fault.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := taken("q", "k")
			newController(&published{}, &bytes.Buffer{}).End(j, c.outcome)
			v := <-j.Verdict()
			if (v.Record != nil) != c.record || (v.Event != nil) != c.event {
				t.Fatalf("the record is %+v, the event %+v", v.Record, v.Event)
			}
			if v.Record != nil && (v.Record.Attempts != c.attempts || v.Record.Ended.IsZero() || v.Record.Queued <= 0 || v.Record.Fault == nil || v.Record.Fault.Kind != c.kind) {
				t.Errorf("the record is %+v", v.Record)
			}
			if v.Event != nil && (v.Event.Attempts != c.attempts || v.Event.Fault != c.kind || v.Event.At.IsZero()) {
				t.Errorf("the event is %+v", v.Event)
			}
		})
	}
}

// A result that is too large, or is not JSON, ends the task as dead with what to do about it; one at the limit is kept.
func TestUnfitResults(t *testing.T) {
	t.Parallel()
	full := []byte(`"` + strings.Repeat("x", task.MaxResult-2) + `"`)
	for name, c := range map[string]struct {
		result []byte
		state  task.State
		kind   fault.Kind
	}{
		"none": {nil, task.Completed, fault.None}, "null": {[]byte("null"), task.Completed, fault.None},
		"at the limit": {full, task.Completed, fault.None}, "above it": {append(full, ' '), task.Dead, fault.TooLarge},
		"not JSON": {[]byte(`{"a":`), task.Dead, fault.Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := taken("q", "k")
			newController(&published{}, &bytes.Buffer{}).End(j, job.Outcome{End: job.Succeeded, Result: c.result})
			v := <-j.Verdict()
			if v.State != c.state || c.state == task.Dead && (v.Record.Fault == nil || v.Record.Fault.Kind != c.kind || v.Record.Result != nil || v.Reason == "") {
				t.Errorf("it is %s with %+v", v.State, v.Record.Fault)
			}
		})
	}
}

// A second end of a job changes neither its verdict nor the counts, also when both come at once.
func TestSecondEndChangesNothing(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := newController(&published{}, &log)
	j := taken("q", "k")
	var both sync.WaitGroup
	for range 8 {
		both.Go(func() { c.End(j, job.Outcome{End: job.Succeeded}) })
	}
	both.Wait()
	c.End(j, job.Outcome{End: job.Faulted, Fault: fault.New(fault.Failed, "late").AsPermanent()})
	if v := <-j.Verdict(); v.State != task.Completed {
		t.Errorf("it is %s", v.State)
	}
	if n := c.Counts("q"); n != (controller.Counts{Completed: 1}) || log.Len() != 0 {
		t.Errorf("the counts are %+v; the log is %s", n, log.String())
	}
}

// The counts tell completed, failed and killed runs apart; a suspect's death is none of them.
func TestCounts(t *testing.T) {
	t.Parallel()
	c := newController(&published{}, &bytes.Buffer{})
	for _, o := range []job.Outcome{
		{End: job.Succeeded}, {End: job.Succeeded}, {End: job.Faulted}, {End: job.Killed}, {End: job.Killed, Suspect: true},
		{End: job.Returned}, {End: job.Interrupted}, {End: job.Cancelled},
	} {
		c.End(taken("q", "k"), o)
	}
	if n := c.Counts("q"); n != (controller.Counts{Completed: 2, Failed: 1, Killed: 1}) {
		t.Errorf("the counts are %+v", n)
	}
	if n := c.Counts("other"); n != (controller.Counts{}) {
		t.Errorf("another queue counts %+v", n)
	}
}

// A thousand reports of progress in a second are published as at most ten messages, the last report among them, and none
// after the end of the run.
func TestProgressIsCoalesced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &published{}
		c := newController(p, &bytes.Buffer{})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = c.Run(ctx) })
		j, other := taken("q", "k"), taken("q2", "k")
		for i := range 1000 {
			c.Progress(j, task.Progress{Done: uint64(i + 1), Total: 1000})
			if i%10 == 0 {
				c.Progress(other, task.Progress{Note: "here too"})
			}
			<-time.After(time.Millisecond)
		}
		<-time.After(200 * time.Millisecond)
		synctest.Wait()
		p.mu.Lock()
		got := p.events[task.KeysOf("q").EventsChannel()]
		if len(got) > 11 || len(got) < 9 || got[len(got)-1].Progress.Done != 1000 || got[0].State != task.Running || got[0].ID != j.ID || got[0].Attempts != 1 {
			t.Errorf("%d events were published, the last %+v", len(got), got[len(got)-1])
		}
		if n := len(p.events[task.KeysOf("q2").EventsChannel()]); n < 9 || n > 11 {
			t.Errorf("%d events of the other queue were published", n)
		}
		before := len(p.times)
		p.mu.Unlock()

		c.Progress(j, task.Progress{Done: 1001})
		c.End(j, job.Outcome{End: job.Succeeded})
		c.Progress(j, task.Progress{Done: 1002})
		<-time.After(time.Second)
		synctest.Wait()
		p.mu.Lock()
		if n := len(p.times) - before; n > 1 || c.Pending() != 0 {
			t.Errorf("%d messages were published after the end, %d wait", n, c.Pending())
		}
		for _, e := range p.events[task.KeysOf("q").EventsChannel()] {
			if e.Progress.Done == 1002 {
				t.Error("progress from after the end was published")
			}
		}
		p.mu.Unlock()
		cancel()
		running.Wait()
	})
}

// The next run of a task that was given back may report again, though the last has ended.
func TestNextRunReportsAgain(t *testing.T) {
	t.Parallel()
	c := newController(&published{}, &bytes.Buffer{})
	first := taken("q", "k")
	c.End(first, job.Outcome{End: job.Returned})
	second := taken("q", "k")
	second.Received = first.Received.Add(time.Millisecond)
	c.Progress(first, task.Progress{Done: 1})
	c.Progress(second, task.Progress{Done: 2})
	if n := c.Pending(); n != 1 {
		t.Errorf("%d jobs have progress, want the second's", n)
	}
}
