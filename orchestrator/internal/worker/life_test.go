package worker_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A process that is killed while it works tells its end once, after all outcomes, with the signal and exactly the jobs that had
// none.
func TestKilledWhileItWorks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	log := filepath.Join(t.TempDir(), "log")
	done := send(t, p, noLimits(), `{"do":"return","value":1}`, `{"do":"return","value":2}`, `{"do":"fail"}`)
	for _, j := range done {
		sink.outcome(t, j)
	}
	sleep := fmt.Sprintf(`{"do":"sleep","ms":600000,"log":%q}`, log)
	left := send(t, p, noLimits(), sleep, sleep, sleep)
	running(t, log, len(left))
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	exit := sink.exit(t)
	if exit.Reason != job.ExitCrash || exit.Signal != syscall.SIGKILL || exit.Code != -1 || exit.Worker != p.ID() || exit.PID != p.PID() {
		t.Errorf("%+v", exit)
	}
	if len(sink.unfinished) != len(left) {
		t.Errorf("%d jobs are left, want %d", len(sink.unfinished), len(left))
	}
	for _, u := range sink.unfinished {
		if u.Guilty || u.Cancelled || u.Started.IsZero() {
			t.Errorf("%+v", u)
		}
	}
	if p.Send(order(`{}`), noLimits()) || !p.Leaving() {
		t.Error("a process that has ended takes a job")
	}
	if state(p.PID()) != "" {
		t.Error("the process was not collected")
	}
}

// A worker that ends itself in the middle of a job crashed, whatever its exit code; also while it was being drained, or a queue
// that replaces its workers after every task could never get rid of a task that ends them.
func TestExitInTheMiddleOfAJob(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 3} {
		for _, drained := range []bool{false, true} {
			t.Run(fmt.Sprintf("code %d, drained %v", code, drained), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				p, sink := r.start()
				j := send(t, p, noLimits(), fmt.Sprintf(`{"do":"exit","code":%d}`, code))[0]
				if drained {
					p.Drain(job.ExitMaxTasks)
				}
				exit := sink.exit(t)
				if exit.Reason != job.ExitCrash || exit.Code != code || exit.Signal != 0 {
					t.Errorf("%+v", exit)
				}
				if _, left := sink.unfinished[j]; !left || len(sink.unfinished) != 1 {
					t.Errorf("left are %v", sink.unfinished)
				}
			})
		}
	}
}

// What a job that heeds its end means depends on who asked: the clock kills it, the client cancels it, a stop interrupts it, and after
// its client's deadline it has expired. The process goes on. The clock counts as a kill whoever notices first, the worker or the manager.
func TestAskedToEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const slots = 100
	roomy := spec(testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")...)
	roomy.Slots = slots
	p, sink := r.startSpec(roomy)
	log := filepath.Join(t.TempDir(), "log")
	const sleep = `{"do":"sleep","ms":600000}`
	many := send(t, p, job.Limits{TaskTimeout: 50 * time.Millisecond, KillGrace: patience}, slices.Repeat([]string{sleep}, slots)...)
	for _, j := range many {
		if o := sink.outcome(t, j); o.End != job.Killed || o.Fault.Kind != fault.Timeout || !strings.Contains(o.Fault.Message, "task_timeout (50ms)") {
			t.Errorf("time-out: %+v, %v", o, o.Fault)
		}
	}
	due := order(sleep)
	due.Deadline = time.Now().Add(50 * time.Millisecond)
	p.Send(due, noLimits())
	if o := sink.outcome(t, due); o.End != job.Expired || o.Fault.Kind != fault.Timeout || !strings.Contains(o.Fault.Message, "its deadline, "+due.Deadline.UTC().Format(time.RFC3339)+", passed after") {
		t.Errorf("deadline: %+v, %v", o, o.Fault)
	}
	bounded := order(sleep)
	bounded.Timeout = 50 * time.Millisecond
	p.Send(bounded, job.Limits{TaskTimeout: time.Hour, KillGrace: patience})
	if o := sink.outcome(t, bounded); o.End != job.Killed || !strings.Contains(o.Fault.Message, "its client gave it (50ms)") {
		t.Errorf("the client's timeout: %+v, %v", o, o.Fault)
	}
	logged := fmt.Sprintf(`{"do":"sleep","ms":600000,"log":%q}`, log)
	jobs := send(t, p, noLimits(), logged, logged)
	running(t, log, len(jobs))
	p.Cancel(jobs[0])
	p.Interrupt(jobs[0]) // the first reason counts
	p.Interrupt(jobs[1])
	if o := sink.outcome(t, jobs[0]); o.End != job.Cancelled || o.Started.IsZero() || o.Worker != p.ID() {
		t.Errorf("cancel: %+v", o)
	}
	if o := sink.outcome(t, jobs[1]); o.End != job.Interrupted {
		t.Errorf("interrupt: %+v", o)
	}
	p.Cancel(jobs[0]) // too late, and not of this process
	p.Cancel(order(`{}`))
	if o := sink.outcome(t, send(t, p, noLimits(), `{"do":"return","value":"on"}`)[0]); string(o.Result) != `"on"` {
		t.Errorf("afterwards: %+v", o)
	}
}

// What a worker returns and complains of arrives as it is.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	jobs := send(t, p, noLimits(), `{"do":"return","value":{"a":1}}`, `{"do":"fail","note":"no"}`, `{"do":"permanent"}`, `{"do":"retry-after","ms":90000}`,
		`{"do":"progress","ms":200,"note":"step"}`)
	if o := sink.outcome(t, jobs[0]); o.End != job.Succeeded || string(o.Result) != `{"a":1}` || o.Fault != nil || o.Ended.Before(o.Started) {
		t.Errorf("return: %+v", o)
	}
	if o := sink.outcome(t, jobs[1]); o.End != job.Faulted || o.Fault.Kind != fault.Failed || o.Fault.Message != "no" || o.Fault.Permanent {
		t.Errorf("fail: %+v", o.Fault)
	}
	if o := sink.outcome(t, jobs[2]); o.End != job.Faulted || !o.Fault.Permanent {
		t.Errorf("permanent: %+v", o.Fault)
	}
	if o := sink.outcome(t, jobs[3]); o.Fault.RetryAfter == nil || *o.Fault.RetryAfter != 90*time.Second {
		t.Errorf("retry-after: %+v", o.Fault)
	}
	sink.outcome(t, jobs[4])
	reports := sink.progress[jobs[4]]
	if len(reports) == 0 || reports[len(reports)-1].Note != "step" || reports[len(reports)-1].Total != 10 {
		t.Errorf("progress: %+v", reports)
	}
}

// A drained process ends its jobs, takes no more, exits with code 0, and its end has the reason of the drain.
func TestDrain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	jobs := send(t, p, noLimits(), `{"do":"sleep","ms":300,"value":1}`, `{"do":"sleep","ms":100,"value":1}`)
	p.Drain(job.ExitIdle)
	p.Drain(job.ExitLifetime) // the first reason counts
	if !p.Leaving() {
		t.Error("it does not leave")
	}
	for _, j := range jobs {
		if o := sink.outcome(t, j); o.End != job.Succeeded {
			t.Errorf("%+v", o)
		}
	}
	if exit := sink.exit(t); exit.Reason != job.ExitIdle || exit.Code != 0 || exit.Signal != 0 || len(sink.unfinished) > 0 {
		t.Errorf("%+v, left are %v", exit, sink.unfinished)
	}
}

// A worker that is asked to end by somebody else finishes its jobs, and its end is no crash.
func TestLeavesByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	log := filepath.Join(t.TempDir(), "log")
	j := send(t, p, noLimits(), fmt.Sprintf(`{"do":"sleep","ms":200,"log":%q}`, log))[0]
	running(t, log, 1)
	if err := syscall.Kill(p.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if o := sink.outcome(t, j); o.End != job.Succeeded {
		t.Errorf("%+v", o)
	}
	if exit := sink.exit(t); exit.Reason != job.ExitLeft || exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
}

// A panic is the fault of its job alone: the process takes no more, lets the others finish, and leaves for that reason.
func TestPanic(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	log := filepath.Join(t.TempDir(), "log")
	quick := send(t, p, noLimits(), fmt.Sprintf(`{"do":"sleep","ms":500,"value":1,"log":%q}`, log))[0]
	slow := send(t, p, noLimits(), fmt.Sprintf(`{"do":"sleep","ms":600000,"log":%q}`, log))[0]
	deaf := send(t, p, noLimits(), fmt.Sprintf(`{"do":"ignore-cancel","ms":600000,"log":%q}`, log))[0]
	running(t, log, 3)
	j := send(t, p, noLimits(), `{"do":"panic","note":"oh no"}`)[0]
	o := sink.outcome(t, j)
	if o.End != job.Faulted || o.Fault.Kind != fault.Panic || !strings.Contains(o.Fault.Message, "oh no") || !strings.Contains(o.Fault.Detail, "misbehave") {
		t.Errorf("%+v, %+v", o, o.Fault)
	}
	if !p.Leaving() {
		t.Error("it takes more jobs")
	}
	if o := sink.outcome(t, quick); o.End != job.Succeeded {
		t.Errorf("the quick one: %+v", o)
	}
	for _, j := range []*job.Job{slow, deaf} {
		if o := sink.outcome(t, j); o.End != job.Interrupted || !o.Loose {
			t.Errorf("one that does not end in time: %+v", o)
		}
	}
	if exit := sink.exit(t); exit.Reason != job.ExitPanic {
		t.Errorf("%+v", exit)
	}
}
