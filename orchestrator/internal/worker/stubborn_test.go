package worker_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol/testenv"
)

const killGrace = 200 * time.Millisecond

// stubborn are jobs that do not end when they are asked to.
func stubborn() map[string]string {
	return map[string]string{
		"ignores": `{"do":"ignore-cancel","ms":600000,"log":%q}`,
		"spins":   `{"do":"spin","ms":600000,"log":%q}`,
		"frozen":  `{"do":"sleep","ms":600000,"log":%q}`,
	}
}

// sendStubborn sends one of them, waits until it runs, and freezes the process when it is to be frozen.
func sendStubborn(t *testing.T, p *worker.Process, name string, limits job.Limits) *job.Job {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	j := send(t, p, limits, fmt.Sprintf(stubborn()[name], log))[0]
	running(t, log, 1)
	if name == "frozen" {
		freeze(t, p.PID())
	}
	return j
}

// A job that does not heed the end of its time costs the process its life within kill_grace and a second, and is the one to
// blame; the others in the process are not. When the process stands still nobody knows whose doing that is.
func TestTimeoutOfAStubbornJob(t *testing.T) {
	t.Parallel()
	for name := range stubborn() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p, sink := r.start()
			other := send(t, p, noLimits(), `{"do":"sleep","ms":600000}`)[0]
			const timeout = 300 * time.Millisecond
			began := time.Now()
			j := sendStubborn(t, p, name, job.Limits{TaskTimeout: timeout, KillGrace: killGrace})
			exit := sink.exit(t)
			gone(t, time.Since(began), timeout)
			if exit.Reason != job.ExitTaskTimeout || exit.Signal != syscall.SIGKILL {
				t.Errorf("%+v", exit)
			}
			if sink.unfinished[j].Guilty != (name != "frozen") || sink.unfinished[other].Guilty || len(sink.unfinished) != 2 {
				t.Errorf("left are %+v", sink.unfinished)
			}
		})
	}
}

// A job that does not heed its client's deadline costs the process its life as well, and is known to have expired.
func TestDeadlineOfAStubbornJob(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	log := filepath.Join(t.TempDir(), "log")
	j := order(fmt.Sprintf(stubborn()["ignores"], log))
	j.Deadline = time.Now().Add(300 * time.Millisecond)
	p.Send(j, job.Limits{TaskTimeout: time.Hour, KillGrace: killGrace})
	running(t, log, 1)
	if exit := sink.exit(t); exit.Signal != syscall.SIGKILL {
		t.Errorf("%+v", exit)
	}
	if u := sink.unfinished[j]; !u.Expired || !u.Guilty || u.Limits.KillGrace != killGrace {
		t.Errorf("left is %+v", u)
	}
}

// A job that was sent to a process that stood still already is known not to have begun.
func TestTimeoutOfAJobThatNeverBegan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	log := filepath.Join(t.TempDir(), "log")
	begun := send(t, p, noLimits(), fmt.Sprintf(`{"do":"progress","ms":600000,"log":%q}`, log))[0]
	running(t, log, 1)
	freeze(t, p.PID())
	j := send(t, p, job.Limits{TaskTimeout: 300 * time.Millisecond, KillGrace: killGrace}, `{"do":"return"}`)[0]
	if exit := sink.exit(t); exit.Reason != job.ExitTaskTimeout {
		t.Errorf("%+v", exit)
	}
	if !sink.unfinished[j].Unbegun || sink.unfinished[begun].Guilty || len(sink.unfinished) != 2 {
		t.Errorf("left are %+v", sink.unfinished)
	}
}

// busy is what a machine that runs many tests at once may add to a bound.
const busy = 3 * time.Second

// gone checks how long a process took to be gone: kill_grace and at most a second.
func gone(t *testing.T, took, before time.Duration) {
	t.Helper()
	t.Logf("gone after %s", took.Round(time.Millisecond))
	if took < before+killGrace || took > before+killGrace+time.Second+busy {
		t.Errorf("it was gone after %s, want kill_grace (%s) and at most a second after %s", took, killGrace, before)
	}
}

// A job that does not heed a cancel costs the process its life, and is known to have been cancelled; so is one that was
// cancelled when the process died of something else.
func TestCancelOfAStubbornJob(t *testing.T) {
	t.Parallel()
	for name := range stubborn() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p, sink := r.start()
			j := sendStubborn(t, p, name, job.Limits{KillGrace: killGrace})
			began := time.Now()
			p.Cancel(j)
			exit := sink.exit(t)
			gone(t, time.Since(began), 0)
			if exit.Reason != job.ExitIgnoredCancel || !sink.unfinished[j].Guilty || !sink.unfinished[j].Cancelled {
				t.Errorf("%+v, left are %+v", exit, sink.unfinished)
			}
		})
	}
	t.Run("crash before the grace is over", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		p, sink := r.start()
		j := send(t, p, noLimits(), `{"do":"ignore-cancel","ms":600000}`)[0]
		p.Cancel(j)
		if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if exit := sink.exit(t); exit.Reason != job.ExitCrash || !sink.unfinished[j].Cancelled || sink.unfinished[j].Guilty {
			t.Errorf("%+v, left are %+v", exit, sink.unfinished)
		}
	})
}

// A drained process that has nothing to do and does not go, frozen or stuck in its Close, is killed all the same.
func TestDrainOfAStubbornProcess(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]worker.Spec{
		"frozen": spec(testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")...),
		"stuck":  flawed(t, roleNeverCloses),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p, sink := r.startSpec(s)
			if name == "frozen" {
				freeze(t, p.PID())
			}
			p.Drain(job.ExitIdle)
			if exit := sink.exit(t); exit.Reason != job.ExitIdle || exit.Signal != syscall.SIGKILL {
				t.Errorf("%+v", exit)
			}
		})
	}
}
