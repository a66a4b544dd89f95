package controller_test

import (
	"bytes"
	"log/slog"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// A run that did not end well is remembered with everything that is known of it, behind the earlier ones, in the verdict and in
// the record; a run that ended well, or never began, is not.
func TestHistory(t *testing.T) {
	t.Parallel()
	earlier := []task.Attempt{{Number: 1, End: task.EndFailed}}
	exit := &job.Exit{
		Reason: job.ExitMemoryMax, Worker: 7, PID: 4242, Code: -1, Signal: syscall.SIGKILL, Tail: []string{"of others", "last words"}, RSS: 300, Limit: 256,
	}
	began := time.Now().Add(-time.Minute)
	killed := job.Outcome{End: job.Killed, Fault: fault.New(fault.Memory, "too large"), Started: began, Ended: began.Add(3 * time.Second), Worker: 7, Tail: []string{"last words"}, Exit: exit}
	suspect, interrupted, failed, expired := killed, killed, killed, killed
	expired.End = job.Expired
	failed.End = job.Faulted
	suspect.Suspect = true
	interrupted.End = job.Interrupted
	for name, c := range map[string]struct {
		outcome job.Outcome
		end     string // empty: nothing is remembered
	}{
		"failed":      {failed, task.EndFailed},
		"killed":      {killed, task.EndKilled},
		"suspect":     {suspect, task.EndSuspect},
		"interrupted": {interrupted, task.EndInterrupted},
		"expired":     {expired, task.EndExpired},
		"never began": {job.Outcome{End: job.Expired}, ""},
		"succeeded":   {job.Outcome{End: job.Succeeded, Started: began}, ""},
		"returned":    {job.Outcome{End: job.Returned}, ""},
		"cancelled":   {job.Outcome{End: job.Cancelled, Started: began}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := taken("q", "k")
			j.Counters, j.History = task.Counters{Failures: 1}, earlier
			newController(&published{}, &bytes.Buffer{}).End(j, c.outcome)
			v := <-j.Verdict()
			want := earlier
			if c.end != "" {
				want = []task.Attempt{earlier[0], {
					Number: 2, Manager: "m1", Worker: 7, PID: 4242, Started: began, Run: 3 * time.Second, End: c.end, Fault: fault.Memory, Message: "too large",
					Exit: "memory-max", Signal: "killed", RSS: 300, Limit: 256, Tail: []string{"last words"},
				}}
			}
			if !reflect.DeepEqual(v.History, want) {
				t.Errorf("the history is %+v\nwant           %+v", v.History, want)
			}
			if v.Record != nil && !reflect.DeepEqual(v.Record.History, want) {
				t.Errorf("the record's history is %+v", v.Record.History)
			}
		})
	}
}

// A history keeps the last runs only, with texts that are short.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	j := taken("q", "k")
	for n := range task.MaxHistory {
		j.History = append(j.History, task.Attempt{Number: n + 1})
	}
	long := strings.Repeat("x", 400)
	tail := []string{"first " + long, long, long, "last"}
	newController(&published{}, &bytes.Buffer{}).End(j, job.Outcome{End: job.Killed, Fault: fault.New(fault.Crash, "%s", long+long), Started: time.Now(), Tail: tail})
	h := (<-j.Verdict()).History
	if len(h) != task.MaxHistory || h[0].Number != 2 {
		t.Fatalf("%d runs are kept, the first is number %d", len(h), h[0].Number)
	}
	last := h[len(h)-1]
	if len(last.Message) != 500 || !reflect.DeepEqual(last.Tail, []string{long, long, "last"}) {
		t.Errorf("it keeps %d bytes of message and %d lines", len(last.Message), len(last.Tail))
	}
}

// Where a handler panicked is kept: the stack in the record and the log, the part that begins it in the history, also while the task is
// tried again.
func TestStackOfAPanic(t *testing.T) {
	t.Parallel()
	stack := "panic({0x1, 0x2})\nmain.load(...)\n\t/src/worker.go:42\n" + strings.Repeat("further out\n", 200)
	for failures, state := range map[int]task.State{0: task.Failed, 4: task.Dead} {
		j := taken("q", "k")
		j.Counters.Failures = failures
		log := &bytes.Buffer{}
		c := newController(&published{}, log)
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.End(j, job.Outcome{End: job.Faulted, Fault: fault.New(fault.Panic, "oh no").WithDetail(stack), Tail: []string{"a line"}, Started: time.Now()})
		v := <-j.Verdict()
		last := v.History[len(v.History)-1]
		if v.State != state || last.End != task.EndFailed || last.Message != "oh no" || len(last.Tail) < 3 || last.Tail[2] != "\t/src/worker.go:42" {
			t.Errorf("%s: %+v", v.State, last)
		}
		if size := len(strings.Join(last.Tail, "")); size > task.MaxAttemptTail {
			t.Errorf("the history has %d bytes of it", size)
		}
		if v.Record != nil && v.Record.Fault.Detail != stack {
			t.Errorf("the record has %q", v.Record.Fault.Detail)
		}
		if !strings.Contains(log.String(), "worker.go:42") {
			t.Errorf("the log is %s", log)
		}
	}
}

// A worker that says that the process which it had started for the task died of it tells of a kill, and so quarantine ends what a
// failure would only delay.
func TestReportedCrashIsAKill(t *testing.T) {
	t.Parallel()
	j := taken("q", "k")
	j.Counters = task.Counters{Kills: 2}
	newController(&published{}, &bytes.Buffer{}).End(j, job.Outcome{End: job.Faulted, Fault: fault.New(fault.Crash, "it was ended by a signal"), Started: time.Now()})
	if v := <-j.Verdict(); v.State != task.Quarantined || v.Counters.Kills != 3 || v.Counters.Failures != 0 {
		t.Errorf("the verdict is %s with %+v", v.State, v.Counters)
	}
}

// A job that was skipped is no run of its task, and its record says why it has no result.
func TestSkippedIsNoAttempt(t *testing.T) {
	t.Parallel()
	j := taken("q", "k")
	newController(&published{}, &bytes.Buffer{}).End(j, job.Outcome{End: job.Succeeded, Result: []byte("null"), Fault: fault.New(fault.Skipped, "another has its lock")})
	if v := <-j.Verdict(); v.State != task.Completed || v.Record.Attempts != 0 || v.Record.Fault == nil || v.Record.Fault.Kind != fault.Skipped {
		t.Errorf("the record is %+v", v.Record)
	}
}
