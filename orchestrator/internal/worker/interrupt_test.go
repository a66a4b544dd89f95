package worker_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/fault"
)

// A run that has lost its lock ends as interrupted when it heeds that. When it does not, or its process is frozen, the process is
// gone soon after the grace of its own, whatever kill_grace says and whatever the run had been asked before; the process ends for
// that reason, and nobody in it is guilty of anything.
func TestInterruptWithin(t *testing.T) {
	t.Parallel()
	const grace, slack = 300 * time.Millisecond, time.Second // of a busy machine
	for _, how := range []string{"deaf", "frozen", "cancelled before"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p, sink := r.start()
			log := filepath.Join(t.TempDir(), "log")
			limits := job.Limits{KillGrace: patience}
			heeds := send(t, p, limits, fmt.Sprintf(`{"do":"sleep","ms":600000,"log":%q}`, log))[0]
			deaf := send(t, p, limits, fmt.Sprintf(`{"do":"ignore-cancel","ms":600000,"log":%q}`, log))[0]
			other := send(t, p, limits, fmt.Sprintf(`{"do":"sleep","ms":600000,"log":%q}`, log))[0]
			running(t, log, 3)
			p.InterruptWithin(heeds, patience)
			if o := sink.outcome(t, heeds); o.End != job.Interrupted || o.Fault.Kind != fault.Interrupted || o.Started.IsZero() {
				t.Errorf("one that heeds: %+v, %v", o, o.Fault)
			}
			switch how {
			case "frozen":
				if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			case "cancelled before":
				p.Cancel(deaf)
			}
			began := time.Now()
			p.InterruptWithin(deaf, grace)
			exit := sink.exit(t)
			if took := time.Since(began); took < grace || took > grace+slack {
				t.Errorf("gone after %s, want %s", took, grace)
			}
			want := job.ExitLockLost
			if how == "cancelled before" {
				want = job.ExitIgnoredCancel // the first reason counts
			}
			if exit.Reason != want || exit.Signal != syscall.SIGKILL || exit.Reason.Blames() {
				t.Errorf("%+v", exit)
			}
			if u, ok := sink.unfinished[other]; !ok || u.Guilty || u.Cancelled {
				t.Errorf("another job in the process: %+v", u)
			}
		})
	}
}
