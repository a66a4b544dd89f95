package worker_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// A stopped process is known to be, and one with a job in it is warned of, once each time; it is not killed.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	log := &buffer{}
	r := newRigWith(t, slog.New(slog.NewTextHandler(log, nil)))
	p, sink := r.start()
	j := send(t, p, noLimits(), `{"do":"sleep","ms":600000,"value":1}`)[0]
	if p.Stopped() {
		t.Error("it is stopped from the start")
	}
	for n := range 2 {
		freeze(t, p.PID())
		if !p.Stopped() {
			t.Error("it is not stopped")
		}
		eventually(t, "it is warned of", func() bool { return strings.Count(log.String(), "has been stopped with tasks in it") == n+1 })
		if _, err := p.Stacks(t.Context()); err == nil || !strings.Contains(err.Error(), "kill -CONT") {
			t.Errorf("its stacks: %v", err)
		}
		if err := syscall.Kill(p.PID(), syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		eventually(t, "its going on is told", func() bool { return strings.Count(log.String(), "goes on") == n+1 })
	}
	if p.Stopped() {
		t.Error("it is stopped still")
	}
	p.Cancel(j)
	sink.outcome(t, j)
}

// A frozen process without jobs that is told to go is gone within kill_grace and a second; so is one that a child, which left it, holds
// the output of, and that ignores a cancel besides.
func TestFrozenProcessGoes(t *testing.T) {
	t.Parallel()
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		s := spec(testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")...)
		s.KillGrace = killGrace
		p, sink := r.startSpec(s)
		freeze(t, p.PID())
		began := time.Now()
		p.Drain(job.ExitScaleDown)
		exit := sink.exit(t)
		gone(t, time.Since(began), 0)
		if exit.Reason != job.ExitScaleDown || exit.Signal != syscall.SIGKILL {
			t.Errorf("%+v", exit)
		}
	})
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		p, sink, child := leaver(t, r, "setsid")
		log := filepath.Join(t.TempDir(), "log")
		j := send(t, p, job.Limits{KillGrace: killGrace}, fmt.Sprintf(`{"do":"ignore-cancel","ms":600000,"log":%q}`, log))[0]
		running(t, log, 1)
		freeze(t, p.PID())
		began := time.Now()
		p.Cancel(j)
		sink.exit(t)
		gone(t, time.Since(began), 0)
		eventually(t, "the child is gone", func() bool { return !alive(child) })
	})
}

// A process that only takes its time to leave gets it, however short kill_grace is.
func TestLeavingTakesItsTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := flawed(t, roleClosesSlowly)
	s.KillGrace = time.Millisecond
	p, sink := r.startSpec(s)
	p.Drain(job.ExitScaleDown)
	if exit := sink.exit(t); exit.Reason != job.ExitScaleDown || exit.Signal != 0 || exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
}

// The stacks of a worker can be seen while it works, by several at once, and a process that has ended has none.
func TestStacks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	log := filepath.Join(t.TempDir(), "log")
	send(t, p, noLimits(), fmt.Sprintf(`{"do":"ignore-cancel","ms":600000,"log":%q}`, log))
	running(t, log, 1)
	texts := make(chan string)
	const askers = 3
	for range askers {
		go func() {
			text, err := p.Stacks(t.Context())
			if err != nil {
				t.Error(err)
			}
			texts <- text
		}()
	}
	for range askers {
		if text := <-texts; !strings.Contains(text, "goroutine ") || !strings.Contains(text, "main.obey") && !strings.Contains(text, "left out") {
			t.Errorf("the stacks are %.300q", text)
		}
	}
	p.Kill(job.ExitOperator)
	sink.exit(t)
	if _, err := p.Stacks(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("of a process that has ended: %v", err)
	}
}
